package console

import (
	"slices"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// page is one thing that a browser can ask for.
type page struct {
	method  string
	path    string          // {name} stands for an id
	role    redisstore.Role // the least that may
	nav     string          // its name in the navigation; "" for none
	stream  bool            // its answer does not end
	raw     bool            // its answer is no page: it is for the script, or a file
	replays bool            // the key that it has just replaced may send it again, and gets the same answer
	confirm string          // of a change: the word that its form asks the viewer to type; "" for none
	undone  string          // of a change: what to say when it fails, such as "The agent was not suspended."

	handle func(*visit) error
	open   func(*fasthttp.RequestCtx) error // instead, for a visitor who is not signed in
}

// router finds pages by method and path.
type router struct {
	pages []page
	parts [][]string // of their paths
}

func newRouter(pages []page) *router {
	r := &router{pages: pages}
	for _, p := range pages {
		r.parts = append(r.parts, strings.Split(p.path, "/"))
	}
	return r
}

// find returns the page and the ids in its path. Errors: errNoPage, and 405 with the methods of the path.
func (r *router) find(method, path string) (*page, map[string]string, error) {
	if method == fasthttp.MethodHead {
		method = fasthttp.MethodGet
	}
	var others []string
	asked := strings.Split(path, "/")
	for i, parts := range r.parts {
		params, fits := match(parts, asked)
		switch {
		case !fits:
		case r.pages[i].method == method:
			return &r.pages[i], params, nil
		default:
			others = append(others, r.pages[i].method)
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		methods := strings.Join(slices.Compact(others), ", ")
		return nil, nil, &problem{Status: fasthttp.StatusMethodNotAllowed, Code: "method_not_allowed", Detail: "this address takes only " + methods, methods: methods}
	}
	return nil, nil, errNoPage
}

// match compares a path with that of a page, part by part.
func match(parts, asked []string) (params map[string]string, fits bool) {
	if len(parts) != len(asked) {
		return nil, false
	}
	for i, part := range parts {
		name, isParam := strings.CutPrefix(part, "{")
		switch {
		case !isParam && part != asked[i], isParam && !isID(asked[i]):
			return nil, false
		case isParam:
			if params == nil {
				params = map[string]string{}
			}
			params[strings.TrimSuffix(name, "}")] = asked[i]
		}
	}
	return params, true
}

// isID reports whether a text can be an id and stands for itself in a path and in a query.
func isID(text string) bool {
	for _, c := range []byte(text) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return text != "" && len(text) <= 128
}
