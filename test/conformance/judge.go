package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// ofTransport are headers of HTTP itself, which an API description omits.
var ofTransport = map[string]bool{
	"Connection": true, "Content-Length": true, "Content-Type": true, "Date": true, "Transfer-Encoding": true,
}

func (s *Suite) judgeHeaders(e *Exchange, response *openapi3.Response) error {
	documented := http.Header{}
	for name := range response.Headers {
		documented.Set(name, "")
	}
	for name := range e.Answer {
		if _, known := documented[http.CanonicalHeaderKey(name)]; !known && !ofTransport[http.CanonicalHeaderKey(name)] {
			return fmt.Errorf("openapi.json: the response has no header %s", name)
		}
	}
	for name, header := range response.Headers {
		values := e.Answer.Values(name)
		switch {
		case len(values) == 0 && header.Value.Required:
			return fmt.Errorf("openapi.json: the response must have the header %s", name)
		case len(values) > 1:
			return fmt.Errorf("the response has the header %s %d times", name, len(values))
		case len(values) == 1:
			if err := s.schemas.judgeText(values[0], header.Value.Schema); err != nil {
				return fmt.Errorf("openapi.json: header %s: %w", name, err)
			}
		}
	}
	return nil
}

func (s *Suite) judgeBody(e *Exchange, response *openapi3.Response) error {
	given := e.Answer.Get("Content-Type")
	if len(response.Content) == 0 {
		if given != "" || len(e.Received) > 0 {
			return fmt.Errorf("openapi.json: the response has no body, but this one has the type %q", given)
		}
		return nil
	}
	mediaType, err := mediaTypeOf(given)
	if err != nil {
		return err
	}
	content := response.Content[mediaType]
	if content == nil {
		return fmt.Errorf("openapi.json: the response is not %s", mediaType)
	}
	if !isJSON(mediaType) || e.Streamed { // the tests of streams check their events
		return nil
	}
	if err := s.schemas.judgeJSON(e.Received, content.Schema); err != nil {
		return fmt.Errorf("openapi.json: the body: %w", err)
	}
	return nil
}

// mediaTypeOf returns a Content-Type without its parameters. It accepts only UTF-8.
func mediaTypeOf(given string) (string, error) {
	mediaType, parameters, err := mime.ParseMediaType(given)
	if err != nil {
		return "", fmt.Errorf("Content-Type %q: %w", given, err)
	}
	if set, has := parameters["charset"]; has && !strings.EqualFold(set, "utf-8") {
		return "", fmt.Errorf("Content-Type %q: the character set is %s", given, set)
	}
	return mediaType, nil
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// judgeRequest checks a request that succeeded. It ignores credentials.
func (s *Suite) judgeRequest(e *Exchange, found match) error {
	body := found.operation.RequestBody
	if err := errors.Join(s.judgeParameters(e, found), s.judgeSent(e, body), s.judgeItems(e, body)); err != nil {
		return fmt.Errorf("openapi.json forbids this request, but it succeeded: %w", err)
	}
	return nil
}

func (s *Suite) judgeParameters(e *Exchange, found match) error {
	query := url.Values{}
	if _, text, _ := strings.Cut(e.Target, "?"); !found.below { // the service ignores the query that a proxy appends
		var err error
		if query, err = url.ParseQuery(text); err != nil {
			return err
		}
	}
	known := map[string]bool{}
	for _, reference := range slices.Concat(found.item.Parameters, found.operation.Parameters) {
		parameter := reference.Value
		var values []string
		switch parameter.In {
		case openapi3.ParameterInPath:
			values = []string{found.parameters[parameter.Name]}
		case openapi3.ParameterInQuery:
			values, known[parameter.Name] = query[parameter.Name], true
		case openapi3.ParameterInHeader:
			values = e.Request.Values(parameter.Name)
		}
		if len(values) == 0 && parameter.Required {
			return fmt.Errorf("the parameter %s is required", parameter.Name)
		}
		for _, value := range values {
			if err := s.schemas.judgeText(value, parameter.Schema); err != nil {
				return fmt.Errorf("parameter %s: %w", parameter.Name, err)
			}
		}
	}
	for name := range query {
		if len(known) > 0 && !known[name] { // an operation without parameters ignores the query
			return errors.New("no parameter has the name " + name)
		}
	}
	return nil
}

func (s *Suite) judgeSent(e *Exchange, described *openapi3.RequestBodyRef) error {
	switch {
	case described == nil: // the service ignores the body
		return nil
	case len(e.Sent) == 0 && described.Value.Required:
		return errors.New("the body is required")
	case len(e.Sent) == 0:
		return nil
	}
	mediaType, err := mediaTypeOf(e.Request.Get("Content-Type"))
	if err != nil {
		return err
	}
	content := described.Value.Content[mediaType]
	switch {
	case content == nil:
		return errors.New("the body may not be " + mediaType)
	case isJSON(mediaType):
		return s.schemas.judgeJSON(e.Sent, content.Schema)
	}
	form, err := url.ParseQuery(string(e.Sent))
	if err != nil {
		return err
	}
	return s.schemas.judgeForm(form, content.Schema)
}

// judgeItems checks the items of a batch whose results say that they succeeded.
func (s *Suite) judgeItems(e *Exchange, described *openapi3.RequestBodyRef) error {
	if described == nil || described.Value.Content["application/json"] == nil {
		return nil
	}
	for name, property := range described.Value.Content["application/json"].Schema.Value.Properties {
		component, _ := property.Value.Extensions[itemsAlone].(string)
		if component == "" {
			continue
		}
		var sent map[string][]json.RawMessage
		var results []struct{ Status int }
		if err := errors.Join(json.Unmarshal(e.Sent, &sent), json.Unmarshal(e.Received, &results)); err != nil {
			return err
		}
		if len(results) != len(sent[name]) {
			return fmt.Errorf("%d items of %s have %d results", len(sent[name]), name, len(results))
		}
		for i, item := range sent[name] {
			if results[i].Status >= http.StatusMultipleChoices {
				continue
			}
			if err := s.schemas.judgeJSON(item, s.components[component]); err != nil {
				return fmt.Errorf("%s[%d]: %w", name, i, err)
			}
		}
	}
	return nil
}
