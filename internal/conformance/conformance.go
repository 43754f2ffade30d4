// Package conformance is for tests only: it holds what a service answers to openapi.json. A route, a field, a header or a
// status that the file does not have is a fault of one of the two, and so is a request that succeeds though the file
// forbids it.
//
// github.com/getkin/kin-openapi reads and judges the file. What its schemas would let pass is closed before: every object of an answer that does
// not say that it is of any members has no others than the file's.
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

// Suite is the file, and what of it was seen.
type Suite struct {
	schemas    *schemas
	components openapi3.Schemas
	routes     []route
	outside    map[string]*openapi3.Response // by status: what no operation answers

	mu     sync.Mutex
	seen   map[*openapi3.Operation]map[string]bool
	judged int
}

// Exchange is a request and the answer to it.
type Exchange struct {
	Method, Target string // Target is the path as it was sent, with the query
	Request        http.Header
	Sent           []byte // the body
	Status         int
	Answer         http.Header
	Received       []byte
	// Streamed says that the answer's body goes on, and is not in Received.
	Streamed bool
}

// Of returns a suite of the file that the service serves. It fails on a file that is not OpenAPI 3.1.
func Of(file []byte) (*Suite, error) {
	prepared, err := prepare(file)
	if err != nil {
		return nil, err
	}
	doc, err := openapi3.NewLoader().LoadFromData(prepared)
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil { // the linter judges them
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

// Shared returns the suite of all tests of a process.
var Shared = sync.OnceValues(func() (*Suite, error) { return Of(openapi.JSON().Body) })

// takeOutside takes what prepare has put there out of the paths: the answers to what is no operation.
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

// Check returns what is wrong with an exchange. Each is judged, however much it is like one before: a wrong value is often
// a digit away from a right one.
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

// expected returns what the file says of the status.
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

// methodsOf returns Allow as it must be. Every GET answers HEAD.
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
