package conformance

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// note records that an operation returned a status and a code.
func (s *Suite) note(operation *openapi3.Operation, e *Exchange) {
	if s.seen[operation] == nil {
		s.seen[operation] = map[string]bool{}
	}
	s.seen[operation][fmt.Sprint(e.Status)] = true
	var problem struct{ Code, Error string }
	if e.Status >= 400 && json.Unmarshal(e.Received, &problem) == nil {
		s.seen[operation][fmt.Sprint(e.Status, " ", problem.Code+problem.Error)] = true
	}
}

// Unseen returns the operations that never succeeded, and the errors that they never returned, each as "GET /path: 404 code".
// It leaves out the errors that every operation may return for malformed HTTP.
func (s *Suite) Unseen() (operations, refusals []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.routes {
		for method, operation := range r.item.Operations() {
			name, seen := method+" "+r.path, s.seen[operation]
			if !hasSucceeded(operation, seen) {
				operations = append(operations, name)
			}
			for status, response := range operation.Responses.Map() {
				if s.outside[status] != nil && status != "404" || status < "400" {
					continue
				}
				for _, code := range codesOf(response.Value) {
					if !seen[status+" "+code] {
						refusals = append(refusals, name+": "+status+" "+code)
					}
				}
			}
		}
	}
	slices.Sort(operations)
	slices.Sort(refusals)
	return operations, refusals
}

// Judged returns how many exchanges passed the check.
func (s *Suite) Judged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged
}

// hasSucceeded reports whether the operation returned one of its successes or, if it has none, any of its responses.
func hasSucceeded(operation *openapi3.Operation, seen map[string]bool) bool {
	succeeds := false
	for status := range operation.Responses.Map() {
		if strings.HasPrefix(status, "2") {
			succeeds = true
			if seen[status] {
				return true
			}
		}
	}
	return !succeeds && len(seen) > 0
}

func codesOf(response *openapi3.Response) []string {
	var codes []string
	for _, content := range response.Content {
		for code := range content.Examples {
			codes = append(codes, code)
		}
	}
	return codes
}

// Codes returns every error code that has an example in the file.
func (s *Suite) Codes() map[string]bool {
	codes := map[string]bool{}
	add := func(response *openapi3.Response) {
		for _, code := range codesOf(response) {
			codes[code] = true
		}
	}
	for _, r := range s.routes {
		for _, operation := range r.item.Operations() {
			for _, response := range operation.Responses.Map() {
				add(response.Value)
			}
		}
	}
	for _, response := range s.outside {
		add(response)
	}
	return codes
}
