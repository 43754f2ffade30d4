// Package conformance checks, in tests, the responses of the service against openapi.json. A route, field, header or status
// that the file lacks is a fault of one of the two. So is a request that succeeds although the file forbids it.
//
// github.com/getkin/kin-openapi reads the file and validates against it. Before that, this package closes the schemas: an
// object of a response has no members beside those in the file, unless its schema allows any.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"remit/openapi"
)

// Suite is the file, and a record of what the tests observed of it.
type Suite struct {
	schemas    *schemas
	components openapi3.Schemas
	routes     []route
	outside    map[string]*openapi3.Response // by status: the responses to requests that match no operation

	mu     sync.Mutex
	seen   map[*openapi3.Operation]map[string]bool
	judged int
}

// Exchange is a request and its response.
type Exchange struct {
	Method, Target string // Target is the request target as sent (RFC 9112 §3.2)
	Request        http.Header
	Sent           []byte // the body
	Status         int
	Answer         http.Header
	Received       []byte
	// Streamed says that the response's body is a stream, and not in Received.
	Streamed bool
}

// Of returns a suite of an OpenAPI 3.1 file. It fails if the file is invalid.
func Of(file []byte) (*Suite, error) {
	prepared, err := prepare(file)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(prepared)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil { // the linter validates them
		return nil, err
	}
	compiled, err := newSchemas(prepared)
	if err != nil {
		return nil, err
	}
	s := &Suite{schemas: compiled, components: doc.Components.Schemas, seen: map[*openapi3.Operation]map[string]bool{}}
	if s.outside, err = takeOutside(doc); err != nil {
		return nil, err
	}
	s.routes = routesOf(doc)
	return s, nil
}

// Shared returns the suite that all tests of a process share.
var Shared = sync.OnceValues(func() (*Suite, error) { return Of(openapi.JSON().Body) })

// takeOutside removes the path that prepare added, and returns its responses: those to requests that match no operation.
func takeOutside(doc *openapi3.T) (map[string]*openapi3.Response, error) {
	item := doc.Paths.Value(outsidePath)
	if item == nil {
		return nil, errors.New("openapi.json has no x-outside-operations")
	}
	doc.Paths.Delete(outsidePath)
	found := map[string]*openapi3.Response{}
	for status, response := range item.Get.Responses.Map() {
		found[status] = response.Value
	}
	return found, nil
}

// Check returns what is wrong with an exchange. It caches no verdict, because a wrong value is often one digit away from a
// right one.
func (s *Suite) Check(e *Exchange) error {
	found, path := s.find(e)
	if err := s.judge(e, found, path); err != nil {
		return fmt.Errorf("%s %s, %d %s\n%w", e.Method, e.Target, e.Status, shortened(e.Received), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.judged++
	if found.operation != nil {
		s.note(found.operation, e)
	}
	return nil
}

func shortened(body []byte) string {
	const enough = 2000
	if len(body) > enough {
		return string(body[:enough]) + "…"
	}
	return string(body)
}

func (s *Suite) judge(e *Exchange, found match, path *openapi3.PathItem) error {
	response, err := s.expected(e, found.operation, path)
	if err != nil {
		return err
	}
	errs := []error{s.judgeHeaders(e, response), s.judgeBody(e, response)}
	if found.operation != nil && e.Status < 300 {
		errs = append(errs, s.judgeRequest(e, found))
	}
	return errors.Join(errs...)
}

// expected returns the response that the file has for the status.
func (s *Suite) expected(e *Exchange, operation *openapi3.Operation, path *openapi3.PathItem) (*openapi3.Response, error) {
	status := fmt.Sprint(e.Status)
	if operation != nil {
		if response := operation.Responses.Value(status); response != nil {
			return response.Value, nil
		}
		return nil, fmt.Errorf("openapi.json: %s has no status %s", operation.OperationID, status)
	}
	response := s.outside[status]
	switch {
	case response == nil && path == nil:
		return nil, errors.New("openapi.json: no such path")
	case response == nil:
		return nil, errors.New("openapi.json: no such method of the path")
	case e.Status == http.StatusMethodNotAllowed && path != nil:
		if want := methodsOf(path); e.Answer.Get("Allow") != want {
			return nil, fmt.Errorf("openapi.json: the path has the methods %s, Allow says %s", want, e.Answer.Get("Allow"))
		}
	}
	return response, nil
}

// methodsOf returns the expected Allow header. Every path with GET supports HEAD.
func methodsOf(path *openapi3.PathItem) string {
	var methods []string
	for method := range path.Operations() {
		methods = append(methods, method)
		if method == http.MethodGet {
			methods = append(methods, http.MethodHead)
		}
	}
	slices.Sort(methods)
	return strings.Join(methods, ", ")
}
