package conformance

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// note remembers that an operation gave a status and a code.
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

// Unseen returns the operations that never succeeded, and the errors that were never given, each as "GET /path: 404 code".
// What every operation may answer to bad HTTP is not among the errors.
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

// Judged returns how many exchanges differed so much from all before that they were judged.
func (s *Suite) Judged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.judged
}

// hasSucceeded says whether the operation gave one of its successes, or, if it has none, anything it has.
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

var seed = maphash.MakeSeed()

// fingerprintOf returns the same for exchanges that differ in digits and in credentials alone.
func fingerprintOf(e *Exchange, found match) uint64 {
	var hash maphash.Hash
	hash.SetSeed(seed)
	fmt.Fprintf(&hash, "%s %s %d %t\n", e.Method, found.path, e.Status, e.Streamed)
	write := func(text string) { hash.WriteString(collapsed(text)); hash.WriteByte('\n') }
	writeHeader := func(header http.Header) {
		for _, name := range slices.Sorted(maps.Keys(header)) {
			hash.WriteString(name)
			for _, value := range header[name] {
				write(value)
			}
		}
	}
	writeHeader(e.Answer)
	if found.operation == nil || e.Status < 300 { // else the request is not judged
		write(e.Target)
		writeHeader(e.Request)
		write(string(e.Sent))
	}
	write(string(e.Received))
	return hash.Sum64()
}

// collapsed writes every number, and every word that is long or has digits in it, as a sign for such. A word is what
// ids, times and credentials are made of; one with capital letters is not of the same kind as one without.
func collapsed(text string) string {
	const long = 32
	var out strings.Builder
	for i := 0; i < len(text); {
		end, digits, letters, capitals := i, false, false, false
		for ; end < len(text) && isWordByte(text[end]); end++ {
			digits = digits || text[end] >= '0' && text[end] <= '9'
			letters = letters || text[end] > '9'
			capitals = capitals || text[end] >= 'A' && text[end] <= 'Z'
		}
		switch {
		case end == i:
			out.WriteByte(text[i])
			end++
		case end-i >= long:
			out.WriteString(text[i : i+4])
			out.WriteByte('~')
		case digits && capitals:
			out.WriteByte('A')
		case digits && letters:
			out.WriteByte('a')
		case digits:
			out.WriteByte('0')
		default:
			out.WriteString(text[i:end])
		}
		i = end
	}
	return out.String()
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// Codes returns every code of an error of which the file has an example.
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
