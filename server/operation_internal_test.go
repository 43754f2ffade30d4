package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"remit/openapi"
)

// Operation is an operation of openapi.json. Tests that send something to every operation read it here, so that they need no lists
// of their own.
type Operation struct {
	ID, Method string
	Paths      []string // with parameters in braces; the second, if there is one, is an alias
	Role       string   // the least role of an API key, "none" where no key opens it
	ByKey      bool     // an API key opens it
	ByToken    bool     // an access token opens it
	ForProxies bool     // a proxy calls it, with its client's access token
	AnyMethod  bool     // it takes every method; Method is one of those described
	Below      bool     // its last parameter is the rest of the path
	Idempotent bool     // it takes the header Idempotency-Key
	// Objects has what the parameters of the path are, by the names of openapi.json: "AgentId" for "id".
	Objects map[string]string
	// Body is the example of the JSON body, nil where the operation has none. NeedsBody says that one must be sent.
	Body      map[string]any
	NeedsBody bool
	JSON      *Schema // of the JSON body, nil where the operation has none
}

// Schema is what openapi.json says of a value.
type Schema struct {
	reference
	AllOf                []Schema
	Type                 any // a text where it takes one alone
	Format               string
	Enum                 []any
	Required             []string
	Properties           map[string]Schema
	AdditionalProperties any
	MinProperties        int
	MinLength, MaxLength int
	MinItems             int
	Minimum, Maximum     json.Number
}

// resolved returns the schema that this one refers to, if it does.
func (s Schema) resolved() Schema {
	for s.Ref != "" || len(s.AllOf) > 0 {
		if s.Ref != "" {
			s = description().Components.Schemas[path.Base(s.Ref)]
		} else {
			s = s.AllOf[0]
		}
	}
	for name, property := range s.Properties {
		s.Properties[name] = property.resolved()
	}
	return s
}

var description = sync.OnceValue(func() (file struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]Schema
		Parameters map[string]struct{ Name, In string }
	}
}) {
	readDescription(openapi.JSON().Body, &file)
	return file
})

// Operations returns every operation of openapi.json, sorted by path and method.
var Operations = sync.OnceValue(func() []Operation {
	paths, aliases := description().Paths, map[string]string{}
	for alias, item := range paths {
		if item["$ref"] != nil {
			var target string
			readDescription(item["$ref"], &target)
			aliases[strings.NewReplacer("#/paths/", "", "~1", "/", "%7B", "{", "%7D", "}").Replace(target)] = alias
		}
	}
	var all []Operation
	for _, at := range slices.Sorted(maps.Keys(paths)) {
		item := paths[at]
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			if item[method] == nil {
				continue
			}
			o := operationIn(item, method)
			o.Paths = []string{at}
			if alias := aliases[at]; alias != "" {
				o.Paths = append(o.Paths, alias)
			}
			all = append(all, o)
		}
	}
	return all
})

type reference struct {
	Ref string `json:"$ref"`
}

func operationIn(item map[string]json.RawMessage, method string) Operation {
	var of struct {
		OperationID string
		Role        string `json:"x-role"`
		Tags        []string
		Security    []map[string]any
		Parameters  []reference
		RequestBody struct {
			Required bool
			Content  map[string]struct {
				Example map[string]any
				Schema  Schema
			}
		}
	}
	readDescription(item[method], &of)
	o := Operation{
		ID: of.OperationID, Method: strings.ToUpper(method), Role: of.Role, ForProxies: slices.Contains(of.Tags, "Proxies"),
		AnyMethod: item["x-any-method"] != nil, Below: item["x-any-path-below"] != nil, Objects: map[string]string{},
	}
	for _, way := range of.Security {
		o.ByKey = o.ByKey || way["apiKey"] != nil
		o.ByToken = o.ByToken || way["accessToken"] != nil
	}
	var shared []reference
	if item["parameters"] != nil {
		readDescription(item["parameters"], &shared)
	}
	for _, r := range slices.Concat(of.Parameters, shared) {
		component := path.Base(r.Ref)
		if p := description().Components.Parameters[component]; p.In == "path" {
			o.Objects[p.Name] = component
		}
		o.Idempotent = o.Idempotent || component == "IdempotencyKey"
	}
	if body, found := of.RequestBody.Content["application/json"]; found {
		schema := body.Schema.resolved()
		o.Body, o.NeedsBody, o.JSON = body.Example, of.RequestBody.Required, &schema
	}
	return o
}

// readDescription decodes a part of openapi.json.
func readDescription(text []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		panic("openapi.json: " + err.Error())
	}
}

// Names returns the operation as "METHOD path", once for each of its paths. The method is "*" where any is taken.
func (o Operation) Names() (names []string) {
	method := o.Method
	if o.AnyMethod {
		method = "*"
	}
	for _, at := range o.Paths {
		names = append(names, method+" "+at)
	}
	return names
}

// Has reports whether a request's path is one of the operation's. It looks at the bytes as they are: no other spelling is the same.
func (o Operation) Has(requested string) bool {
	return slices.ContainsFunc(o.Paths, func(at string) bool {
		if above, _, _ := strings.Cut(at, "{"); o.Below {
			return strings.HasPrefix(requested, above)
		}
		want, got := strings.Split(at, "/"), strings.Split(requested, "/")
		return slices.EqualFunc(want, got, func(w, g string) bool { return w == g || strings.HasPrefix(w, "{") && g != "" })
	})
}

// MethodsAt returns the methods that a path answers to, sorted: "*" for any, none for a path that is not served.
func MethodsAt(requested string) (methods []string) {
	for _, o := range Operations() {
		switch {
		case !o.Has(requested):
		case o.AnyMethod:
			return []string{"*"}
		case o.Method == http.MethodGet:
			methods = append(methods, http.MethodGet, http.MethodHead)
		default:
			methods = append(methods, o.Method)
		}
	}
	slices.Sort(methods)
	return slices.Compact(methods)
}
