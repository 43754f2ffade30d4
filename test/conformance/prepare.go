package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
)

type object = map[string]any

// outsidePath is a path that no service has. Its operation holds the responses of x-outside-operations for the validator.
const outsidePath = "/x-outside-operations"

// prepare returns the file with the references between paths resolved, which the validator does not do, and the objects of
// its responses closed.
func prepare(file []byte) ([]byte, error) {
	var root object
	if err := json.Unmarshal(file, &root); err != nil {
		return nil, err
	}
	paths := member(root, "paths")
	for path, item := range paths {
		given, _ := item.(object)
		target, isReference := given["$ref"].(string)
		if !isReference {
			continue
		}
		name := strings.NewReplacer("~1", "/", "%7B", "{", "%7D", "}").Replace(strings.TrimPrefix(target, "#/paths/"))
		text, err := json.Marshal(paths[name])
		var copied object
		if err != nil || json.Unmarshal(text, &copied) != nil || copied == nil {
			return nil, fmt.Errorf("%s: the reference %s does not resolve", path, target)
		}
		for _, operation := range copied {
			if operation, ok := operation.(object); ok {
				operation["operationId"] = fmt.Sprint(operation["operationId"], " ", path)
			}
		}
		paths[path] = copied
	}
	if outside := root["x-outside-operations"]; outside != nil {
		paths[outsidePath] = object{"get": object{"responses": outside}}
	}
	c := closing{member(member(root, "components"), "schemas")}
	for _, schema := range c.schemas {
		if schema, ok := schema.(object); ok {
			detachItems(schema)
			countDecimals(schema)
		}
		c.closeInside(schema)
	}
	for _, response := range member(member(root, "components"), "responses") {
		c.closeResponse(response)
	}
	for _, item := range paths {
		for _, operation := range item.(object) {
			operation, _ := operation.(object)
			for _, response := range member(operation, "responses") {
				c.closeResponse(response)
			}
		}
	}
	return json.Marshal(root)
}

func member(of object, name string) object { m, _ := of[name].(object); return m }

// itemsAlone is the member in which detachItems leaves the component for judgeItems.
const itemsAlone = "x-items-alone"

// detachItems removes the schema of items that the service validates one by one: a request with some invalid items succeeds.
func detachItems(schema object) {
	for _, property := range member(schema, "properties") {
		if property, ok := property.(object); ok && property["x-judged-alone"] == true {
			reference, _ := member(property, "items")["$ref"].(string)
			property[itemsAlone] = reference[strings.LastIndexByte(reference, '/')+1:]
			delete(property, "items")
		}
	}
}

// countDecimals bounds the decimals of money exactly. The file itself does not, because to validators that use float64 0.37 is
// not a multiple of 0.000001.
func countDecimals(schema object) {
	if decimals, ok := schema["x-decimals"].(float64); ok {
		schema["multipleOf"] = json.Number(fmt.Sprintf("1e-%d", int(decimals)))
	}
}

// closing closes schemas. It uses unevaluatedProperties, which unlike additionalProperties sees through allOf and references.
type closing struct{ schemas object }

func (c closing) closeResponse(response any) {
	r, _ := response.(object)
	for _, body := range member(r, "content") {
		if body, ok := body.(object); ok && body["schema"] != nil {
			c.closeInside(body["schema"])
			body["schema"] = c.closed(body["schema"])
		}
	}
}

// closeInside closes the members and items of a schema. A component itself is closed where it is used, because other
// components may extend it.
func (c closing) closeInside(schema any) {
	s, _ := schema.(object)
	for _, list := range []string{"allOf", "anyOf"} {
		parts, _ := s[list].([]any)
		for _, part := range parts {
			c.closeInside(part)
		}
	}
	properties := member(s, "properties")
	for name, property := range properties {
		c.closeInside(property)
		properties[name] = c.closed(property)
	}
	if s["items"] != nil {
		c.closeInside(s["items"])
		s["items"] = c.closed(s["items"])
	}
}

func (c closing) closed(schema any) any {
	s, _ := schema.(object)
	if !c.hasMembers(s) {
		return schema
	}
	if s["$ref"] != nil {
		return object{"allOf": []any{schema}, "unevaluatedProperties": false}
	}
	s["unevaluatedProperties"] = false
	return s
}

// hasMembers reports whether a schema names the members of an object, and is neither open nor closed yet.
func (c closing) hasMembers(s object) bool {
	if reference, ok := s["$ref"].(string); ok {
		return c.hasMembers(member(c.schemas, reference[strings.LastIndexByte(reference, '/')+1:]))
	}
	if s["additionalProperties"] != nil || s["unevaluatedProperties"] != nil {
		return false
	}
	parts := []any{}
	for _, list := range []string{"allOf", "anyOf"} {
		some, _ := s[list].([]any)
		parts = append(parts, some...)
	}
	for _, part := range parts {
		if part, ok := part.(object); ok && c.hasMembers(part) {
			return true
		}
	}
	return s["properties"] != nil
}
