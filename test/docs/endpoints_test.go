package docs

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/openapi"
)

// shortSessions is the shorter of the two paths of sessions, in a command or an operation.
var shortSessions = regexp.MustCompile(`(?:(?:GET|POST|PATCH) |\$URL)/sessions`)

func TestThePagesCallSessionsByOnePath(t *testing.T) {
	t.Parallel()
	eachFile(t, []string{".md"}, func(path, text string) {
		if found := shortSessions.FindString(text); found != "" {
			t.Errorf("%s has %q: write /v1/sessions", path, found)
		}
	})
}

// TestTheAPIPageNamesEveryOperation leaves out the paths below those of proxies, and the shorter ones of sessions: they do what those do.
func TestTheAPIPageNamesEveryOperation(t *testing.T) {
	t.Parallel()
	page := must(os.ReadFile("docs/api.md"))(t)
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	noError(t, json.Unmarshal(openapi.JSON().Body, &description))
	var named []string
	for _, found := range regexp.MustCompile("`((?:GET|POST|PUT|PATCH|DELETE|any) /[^`]*)`").FindAllStringSubmatch(string(page), -1) {
		named = append(named, found[1])
	}
	for at, item := range description.Paths {
		if item["x-any-path-below"] != nil || strings.HasPrefix(at, "/sessions") {
			continue
		}
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			want := strings.ToUpper(method) + " " + at
			if item["x-any-method"] != nil {
				want = "any " + at
			}
			if item[method] != nil && !slices.Contains(named, want) {
				t.Errorf("docs/api.md does not name %s", want)
			}
		}
	}
}
