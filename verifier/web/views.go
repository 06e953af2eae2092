package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

//go:embed assets templates
var files embed.FS

// frame is what every page has around it.
type frame struct {
	Title, Section string
	Session        *session
	// Search is what stands in the search box.
	Search string
	Now    engine.Instant
	// Flags name store and tenant in commands to copy.
	Flags string
	// Parked actions need somebody; Disagreeing are those of them on which the
	// evaluators disagree. ParkedMore: there are more than were counted.
	Parked, Disagreeing int
	ParkedMore          bool
	// Live is "all", or the internal id of the one action whose verdicts change the page; empty for none.
	Live string
	// Refresh is after how many seconds the page is worth another look because something is still counted.
	Refresh int
}

// Attention: something waits for a person.
func (f frame) Attention() bool { return f.Parked > 0 }

// mostParked bounds what is counted for the banner.
const mostParked = 200

// frame makes the frame of a page in a transaction.
func (p *Page) frame(r *http.Request, tx ledger.Tx, title, section string) (frame, error) {
	s := sessionOf(r.Context())
	f := frame{Title: title, Section: section, Session: s, Now: p.Now(), Flags: p.flags(s.Tenant)}
	parked, err := tx.ParkedActions(r.Context(), s.Tenant, mostParked+1)
	if err != nil {
		return frame{}, err
	}
	f.ParkedMore = len(parked) > mostParked
	f.Parked = min(len(parked), mostParked)
	for _, one := range parked[:f.Parked] {
		if disagreement(one.Error) {
			f.Disagreeing++
		}
	}
	return f, nil
}

func (p *Page) flags(tenant string) string {
	flags := "--store " + shell(p.Store)
	if tenant != engine.DefaultTenant {
		flags += " --tenant " + shell(tenant)
	}
	return flags
}

// views are the parsed templates by name.
type views map[string]*template.Template

func parseViews() (views, error) {
	pages, err := fs.Glob(files, "templates/page_*.html")
	if err != nil {
		return nil, err
	}
	base, err := template.New("layout").Funcs(functions).ParseFS(files, "templates/layout.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	parsed := views{}
	for _, file := range pages {
		one, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if one, err = one.ParseFS(files, file); err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path.Base(file), "page_"), ".html")
		parsed[name] = one
	}
	return parsed, nil
}

// write renders the whole page before anything is sent, so that an error is an error.
func (p *Page) write(w http.ResponseWriter, status int, name string, data any) error {
	var page bytes.Buffer
	if err := p.views[name].ExecuteTemplate(&page, "layout", data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = page.WriteTo(w) // the browser may be gone
	return nil
}

var functions = template.FuncMap{
	"plain": plain, "clip": clip, "clock": clock, "ago": ago, "largest": largest, "offset": offset,
	"percent": percent, "grouped": grouped, "plural": plural, "web": web, "shell": shell,
	"actionPath": actionPath, "contractPath": contractPath, "listPath": listPath,
	"asset": assetPath, "lower": strings.ToLower, "words": words, "pairs": pairs,
	"duration": func(seconds int64) string { return engine.Duration(seconds).String() },
}

// words shows a name of the specification to people: self_reported, self reported.
func words(name string) string { return strings.ReplaceAll(name, "_", " ") }

// pairs gives a part several values, by name.
func pairs(values ...any) (map[string]any, error) {
	named := make(map[string]any, len(values)/2)
	for i := 0; i+1 < len(values); i += 2 {
		name, ok := values[i].(string)
		if !ok {
			return nil, fmt.Errorf("pairs: value %d is no name", i)
		}
		named[name] = values[i+1]
	}
	return named, nil
}

// An asset's address has the hash of its content, so that browsers may keep it forever.
type asset struct {
	content []byte
	media   string
	address string
}

var assets = loadAssets()

func loadAssets() map[string]asset {
	loaded := map[string]asset{}
	for name, media := range map[string]string{
		"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8", "mark.svg": "image/svg+xml",
	} {
		content, err := files.ReadFile("assets/" + name)
		if err != nil {
			panic(err) // the file is embedded
		}
		sum := sha256.Sum256(content)
		stem, extension, _ := strings.Cut(name, ".")
		loaded[name] = asset{content, media, stem + "-" + hex.EncodeToString(sum[:6]) + "." + extension}
	}
	return loaded
}

func assetPath(name string) (string, error) {
	a, ok := assets[name]
	if !ok {
		return "", fmt.Errorf("no asset is named %q", name)
	}
	return "/assets/" + a.address, nil
}

func assetHandler() http.Handler {
	byAddress := map[string]asset{}
	for _, a := range assets {
		byAddress[a.address] = a
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		a, ok := byAddress[r.PathValue("name")]
		if !ok {
			http.Error(w, "no such asset", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", a.media)
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		_, _ = w.Write(a.content) // the browser may be gone
	})
}
