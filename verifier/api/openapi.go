package api

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/countersign-otel/countersign/engine"
)

// describe finishes the OpenAPI description with what types alone do not say:
// which members may be null, and that recording answers 201 or 200.
func (h *handler) describe() {
	registry := h.api.OpenAPI().Components.Schemas
	for name, schema := range registry.Map() {
		if t := registry.TypeFromRef("#/components/schemas/" + name); t != nil && t.Kind() == reflect.Struct {
			allowNull(schema, t)
		}
	}
	post := h.api.OpenAPI().Paths["/v1/actions"].Post
	created := *post.Responses["201"]
	created.Description = "Updated: the action was known"
	post.Responses["200"] = &created
	post.Responses["201"].Description = http.StatusText(http.StatusCreated)
}

// allowNull lets members be null whose Go fields are always shown and pointers.
func allowNull(schema *huma.Schema, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			allowNull(schema, field.Type)
			continue
		}
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		property := schema.Properties[name]
		shown := field.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omitempty")
		// Params may be null, which means that they were not captured (decision D33).
		if property == nil || !shown && field.Type != reflect.TypeFor[engine.Object]() {
			continue
		}
		schema.Properties[name] = orNull(property)
	}
}

func orNull(property *huma.Schema) *huma.Schema {
	if property.Ref != "" {
		return &huma.Schema{Description: property.Description, OneOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}}}
	}
	property.Nullable = true
	if len(property.Enum) > 0 {
		property.Enum = append(property.Enum, nil)
	}
	return property
}
