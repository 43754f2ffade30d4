package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas validates values by JSON Schema 2020-12, with the library that kin-openapi uses. It compiles each schema once.
// kin-openapi compiles it for each value, which would take nearly all of the tests' time.
type schemas struct {
	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[*openapi3.SchemaRef]*jsonschema.Schema
}

const rootName = "openapi.json"

// newSchemas takes the prepared file, because schemas refer to its components.
func newSchemas(prepared []byte) (*schemas, error) {
	root, err := jsonschema.UnmarshalJSON(bytes.NewReader(prepared))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	return &schemas{compiler: c, compiled: map[*openapi3.SchemaRef]*jsonschema.Schema{}}, c.AddResource(rootName, root)
}

func (s *schemas) of(given *openapi3.SchemaRef) (*jsonschema.Schema, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.compiled[given]; known != nil {
		return known, nil
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	text = bytes.ReplaceAll(text, []byte(`"#/components/`), []byte(`"`+rootName+`#/components/`))
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("schema%d.json", len(s.compiled))
	if err := s.compiler.AddResource(name, resource); err != nil {
		return nil, err
	}
	compiled, err := s.compiler.Compile(name)
	if err != nil {
		return nil, err
	}
	s.compiled[given] = compiled
	return compiled, nil
}

// judge validates a value whose numbers are json.Number.
func (s *schemas) judge(value any, given *openapi3.SchemaRef) error {
	schema, err := s.of(given)
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// judgeJSON validates a text that must be one JSON value.
func (s *schemas) judgeJSON(text []byte, given *openapi3.SchemaRef) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return s.judge(value, given)
}

// judgeText validates a text on the wire, which may represent a number.
func (s *schemas) judgeText(text string, given *openapi3.SchemaRef) error {
	if kind := given.Value.Type; kind.Is("integer") || kind.Is("number") {
		return s.judgeJSON([]byte(text), given)
	}
	return s.judge(text, given)
}

// judgeForm validates a form, whose values are texts.
func (s *schemas) judgeForm(form map[string][]string, given *openapi3.SchemaRef) error {
	object := map[string]any{}
	for name, values := range form {
		object[name] = strings.Join(values, " ")
	}
	return s.judge(object, given)
}
