package scheme

import "strings"

// list is every scheme there is.
var list = []Scheme{
	stripe,
	shopify,
	github,
	slack,
	zendesk,
	standardWebhooks,
	hmacScheme,
	apiKey,
}

// All returns every scheme. The slice is shared: do not change it.
func All() []Scheme { return list }

// Find returns the scheme of this name.
func Find(name string) (Scheme, bool) {
	for _, s := range list {
		if s.Name == name {
			return s, true
		}
	}
	return Scheme{}, false
}

// Names lists the schemes for people.
func Names() string {
	names := make([]string, len(list))
	for i, s := range list {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}
