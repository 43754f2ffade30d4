package conformance

import (
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// route is a path of the file.
type route struct {
	path      string
	segments  []string
	item      *openapi3.PathItem
	anyMethod bool // x-any-method: every method returns the same response as GET
	below     bool // x-any-path-below: the last parameter is the rest of the path, slashes included
}

// match is the operation that a request matches, if any.
type match struct {
	route
	operation  *openapi3.Operation
	parameters map[string]string
}

func routesOf(doc *openapi3.T) []route {
	var routes []route
	for path, item := range doc.Paths.Map() {
		anyMethod, _ := item.Extensions["x-any-method"].(bool)
		below, _ := item.Extensions["x-any-path-below"].(bool)
		routes = append(routes, route{path, strings.Split(path, "/"), item, anyMethod, below})
	}
	slices.SortFunc(routes, func(a, b route) int { return strings.Compare(a.path, b.path) })
	return routes
}

// find returns the operation that a request matches, and its path item even if the path does not support the method.
func (s *Suite) find(e *Exchange) (match, *openapi3.PathItem) {
	path, _, _ := strings.Cut(e.Target, "?")
	for _, r := range s.routes {
		parameters, ok := r.parametersIn(path)
		if !ok {
			continue
		}
		method := e.Method
		if method == http.MethodHead || r.anyMethod && r.item.Operations()[method] == nil {
			method = http.MethodGet
		}
		if operation := r.item.Operations()[method]; operation != nil {
			return match{r, operation, parameters}, r.item
		}
		return match{}, r.item
	}
	return match{}, nil
}

func (r route) parametersIn(path string) (map[string]string, bool) {
	parts := strings.Split(path, "/")
	if r.below && len(parts) > len(r.segments) {
		last := len(r.segments) - 1
		parts = append(parts[:last:last], strings.Join(parts[last:], "/"))
	}
	if len(parts) != len(r.segments) {
		return nil, false
	}
	parameters := map[string]string{}
	for i, segment := range r.segments {
		name, isParameter := strings.CutPrefix(segment, "{")
		switch {
		case isParameter && (parts[i] != "" || r.below):
			parameters[strings.TrimSuffix(name, "}")] = parts[i]
		case segment != parts[i]:
			return nil, false
		}
	}
	return parameters, true
}
