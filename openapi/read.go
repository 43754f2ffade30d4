package openapi

import (
	"fmt"
	"slices"
	"strings"
)

// api is the part of the description that the page shows, in its order.
type api struct {
	Title, Summary, Description string
	Credentials                 []credential
	Groups                      []group
	Errors                      []errorResponse
	Schemas                     []schema
}

type credential struct{ Name, Kind, Description string }

// group holds the operations of a tag.
type group struct {
	ID, Name, Description string
	Operations            []operation
}

type operation struct {
	ID, Method, Path, Also string // Also is an alias of Path
	Summary, Description   string
	Credentials            []string
	Parameters             []field
	Request                *content
	Optional               bool     // the body
	Samples                []sample // the first is for curl
	Responses              []response
	Errors                 []errorLink
}

// content is the body of a request or a response.
type content struct {
	MediaType, Kind, Ref string // Kind describes the schema, Ref names it
	Description          string
	Fields               []field
	Example              string
}

// response is a successful response.
type response struct {
	Status, Description string
	Headers             []field
	Contents            []content
}

// errorResponse is a response that several operations share.
type errorResponse struct {
	ID, Status, Description string
	Headers                 []field
	Examples                []example
}

type example struct{ Code, Body string }

// errorLink points from an operation to an error response.
type errorLink struct {
	ID, Status string
	Codes      []string
}

// field is a parameter, a header or a member of a schema.
type field struct {
	Name, Where, Kind, Ref, Description string
	Required                            bool
}

// schema is one of the components that are objects.
type schema struct {
	Name, Description, Kind string
	Fields                  []field
}

var methods = []string{"post", "get", "patch", "put", "delete"}

// reader resolves references while it reads.
type reader struct {
	root     object
	statuses map[string]string // of the shared responses, by name, as operations return them
}

func read(text []byte) (api, error) {
	value, err := parse(text)
	root, isObject := value.(object)
	if err != nil || !isObject {
		return api{}, fmt.Errorf("openapi.json: not one JSON object: %w", err)
	}
	r := reader{root, map[string]string{}}
	info := root.object("info")
	a := api{Title: info.text("title"), Summary: info.text("summary"), Description: info.text("description")}
	components := root.object("components")
	a.Credentials = credentialsIn(components.object("securitySchemes"))
	a.Groups = r.groups()
	responses := components.object("responses")
	for _, name := range responses.names {
		a.Errors = append(a.Errors, r.errorResponse(name, responses.object(name)))
	}
	slices.SortStableFunc(a.Errors, func(x, y errorResponse) int { return strings.Compare(x.Status, y.Status) })
	schemas := components.object("schemas")
	for _, name := range schemas.names {
		if s := schemas.object(name); r.isObject(s) {
			a.Schemas = append(a.Schemas, schema{name, s.text("description"), r.kind(s).text, r.members(s)})
		}
	}
	return a, nil
}

func credentialsIn(schemes object) []credential {
	var found []credential
	for _, name := range schemes.names {
		s := schemes.object(name)
		kind := map[string]string{
			"apiKey": s.text("name") + " header", "oauth2": "OAuth 2.0 client credentials", "http": "HTTP " + s.text("scheme"),
		}[s.text("type")]
		found = append(found, credential{name, kind, s.text("description")})
	}
	return found
}

// resolve follows a reference, and returns the name of the component it leads to.
func (r reader) resolve(o object) (object, string) {
	name := ""
	for o.has("$ref") {
		at := r.root
		for part := range strings.SplitSeq(strings.TrimPrefix(o.text("$ref"), "#/"), "/") {
			part = strings.NewReplacer("~1", "/", "~0", "~", "%7B", "{", "%7D", "}").Replace(part)
			at, name = at.object(part), part
		}
		o = at
	}
	return o, name
}

func (r reader) groups() []group {
	paths, also := r.root.object("paths"), map[string]string{}
	for _, path := range paths.names {
		if _, target := r.resolve(paths.object(path)); target != "" {
			also[target] = path
		}
	}
	var groups []group
	for _, tag := range r.root.objects("tags") {
		g := group{ID: anchor(tag.text("name")), Name: tag.text("name"), Description: tag.text("description")}
		for _, path := range paths.names {
			item := paths.object(path)
			for _, method := range item.names {
				if o := item.object(method); slices.Contains(methods, method) && slices.Contains(o.texts("tags"), g.Name) {
					g.Operations = append(g.Operations, r.operation(path, method, also[path], item, o))
				}
			}
		}
		groups = append(groups, g)
	}
	return groups
}

func (r reader) operation(path, method, also string, item, o object) operation {
	op := operation{
		ID: o.text("operationId"), Method: strings.ToUpper(method), Path: path, Also: also,
		Summary: o.text("summary"), Description: o.text("description"), Credentials: credentialsOf(o),
	}
	parameters := slices.Concat(item.objects("parameters"), o.objects("parameters"))
	for i, p := range parameters {
		parameters[i], _ = r.resolve(p)
		if p := parameters[i]; p.text("name") != "X-Request-Id" { // every operation takes it
			f := r.field(p.text("name"), p.object("schema"), p.flag("required"))
			f.Where, f.Description = p.text("in"), p.text("description")
			op.Parameters = append(op.Parameters, f)
		}
	}
	if body := o.object("requestBody"); len(body.names) > 0 {
		contents := r.contents(body)
		op.Request, op.Optional = &contents[0], !body.flag("required")
	}
	op.Samples = append([]sample{{"curl", curl(op, parameters, o)}}, samplesOf(op.ID)...)
	responses := o.object("responses")
	for _, status := range responses.names {
		resp, name := r.resolve(responses.object(status))
		if name == "" {
			op.Responses = append(op.Responses, response{status, resp.text("description"), r.headers(resp), r.contents(resp)})
			continue
		}
		r.statuses[name] = status
		op.Errors = append(op.Errors, errorLink{anchor(name), status, codesOf(resp)})
	}
	return op
}

// credentialsOf returns the names of the security schemes, each of which suffices. "none" means that none is needed.
func credentialsOf(o object) []string {
	names := []string{}
	for _, way := range o.objects("security") {
		if len(way.names) == 0 {
			names = append(names, "none")
			continue
		}
		names = append(names, strings.Join(way.names, " and "))
	}
	if len(names) == 0 {
		return []string{"none"}
	}
	return names
}

func codesOf(resp object) []string {
	var codes []string
	contents := resp.object("content")
	for _, mediaType := range contents.names {
		for _, code := range contents.object(mediaType).object("examples").names {
			if !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
	}
	return codes
}

func (r reader) errorResponse(name string, resp object) errorResponse {
	found := errorResponse{ID: anchor(name), Status: r.statuses[name], Description: resp.text("description"), Headers: r.headers(resp)}
	contents := resp.object("content")
	for _, mediaType := range contents.names {
		examples := contents.object(mediaType).object("examples")
		for _, code := range examples.names {
			if !slices.ContainsFunc(found.Examples, func(e example) bool { return e.Code == code }) {
				found.Examples = append(found.Examples, example{code, indented(examples.object(code).values["value"])})
			}
		}
	}
	return found
}

func (r reader) headers(resp object) []field {
	var found []field
	headers := resp.object("headers")
	for _, name := range headers.names {
		if name == "X-Request-Id" || name == "X-Content-Type-Options" { // on every response
			continue
		}
		h, _ := r.resolve(headers.object(name))
		f := r.field(name, h.object("schema"), h.flag("required"))
		f.Description = h.text("description")
		found = append(found, f)
	}
	return found
}

func (r reader) contents(of object) []content {
	var found []content
	contents := of.object("content")
	for _, mediaType := range contents.names {
		body := contents.object(mediaType)
		given := body.object("schema")
		kind := r.kind(given)
		c := content{MediaType: mediaType, Kind: kind.text, Ref: kind.ref, Fields: r.members(given)}
		resolved, _ := r.resolve(given)
		c.Description = resolved.text("description")
		switch value := body.values["example"].(type) {
		case nil:
		case string:
			c.Example = value
		default:
			c.Example = indented(value)
		}
		found = append(found, c)
	}
	return found
}

func anchor(name string) string {
	return strings.ToLower(strings.NewReplacer(" ", "-", ".", "-").Replace(name))
}
