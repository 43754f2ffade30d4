package conformance

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// ofTransport are the headers that HTTP itself has, and no API describes.
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
			return fmt.Errorf("openapi.json: the answer has no header %s", name)
		}
	}
	for name, header := range response.Headers {
		values := e.Answer.Values(name)
		switch {
		case len(values) == 0 && header.Value.Required:
			return fmt.Errorf("openapi.json: the answer must have the header %s", name)
		case len(values) > 1:
			return fmt.Errorf("the header %s comes %d times", name, len(values))
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
			return fmt.Errorf("openapi.json: the answer has no body, and this one is %q", given)
		}
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(given)
	if err != nil {
		return fmt.Errorf("Content-Type %q: %w", given, err)
	}
	content := response.Content[mediaType]
	if content == nil {
		return fmt.Errorf("openapi.json: the answer is not %s", mediaType)
	}
	if !isJSON(mediaType) || e.Streamed {
		return nil
	}
	if err := s.schemas.judgeJSON(e.Received, content.Schema); err != nil {
		return fmt.Errorf("openapi.json: the body: %w", err)
	}
	return nil
}

func isJSON(mediaType string) bool {
	return mediaType == "application/json" || strings.HasSuffix(mediaType, "+json")
}

// judgeRequest judges a request that was carried out. Credentials are for the service to judge.
func (s *Suite) judgeRequest(e *Exchange, found match) error {
	if err := errors.Join(s.judgeParameters(e, found), s.judgeSent(e, found.operation.RequestBody)); err != nil {
		return fmt.Errorf("openapi.json forbids this request, which was carried out: %w", err)
	}
	return nil
}

func (s *Suite) judgeParameters(e *Exchange, found match) error {
	query := url.Values{}
	if _, text, _ := strings.Cut(e.Target, "?"); !found.below { // what a gateway has appended is not looked at
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
		if len(known) > 0 && !known[name] { // an operation without any looks at none
			return errors.New("no parameter is called " + name)
		}
	}
	return nil
}

func (s *Suite) judgeSent(e *Exchange, described *openapi3.RequestBodyRef) error {
	switch {
	case described == nil: // and not looked at, but for a DELETE's
		return nil
	case len(e.Sent) == 0 && described.Value.Required:
		return errors.New("the body is required")
	case len(e.Sent) == 0:
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(e.Request.Get("Content-Type"))
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
