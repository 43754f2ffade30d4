package docs

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"remit/openapi"
)

var endpointRow = regexp.MustCompile(`(?m)^\| ((?:GET|POST|PUT|PATCH|DELETE|any) /[^|]*) \|`)

// endpointsIn returns the operations that have a row on a page, as "METHOD /path". A row may name several: the next ones without
// the method, or with … for all of the path but its last part.
func endpointsIn(page string) (named []string) {
	for _, row := range endpointRow.FindAllStringSubmatch(page, -1) {
		method, last := "", ""
		for _, one := range strings.Split(strings.TrimSuffix(row[1], " ¹"), ", ") {
			if before, after, found := strings.Cut(one, " "); found {
				method, one = before, after
			}
			if end, found := strings.CutPrefix(one, "…/"); found {
				one = path.Dir(last) + "/" + end
			}
			last = one
			named = append(named, method+" "+one)
		}
	}
	return named
}

// TestTheAPIPageHasARowForEveryOperation asks for no row of the paths below those of proxies: they do what those do.
func TestTheAPIPageHasARowForEveryOperation(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapi.JSON().Body, &description); err != nil {
		t.Fatal(err)
	}
	named := endpointsIn(string(page))
	for at, item := range description.Paths {
		if item["x-any-path-below"] != nil {
			continue
		}
		for _, method := range []string{"get", "put", "post", "patch", "delete"} {
			want := strings.ToUpper(method) + " " + strings.Replace(at, "/v1/sessions", "/sessions", 1)
			if item["x-any-method"] != nil {
				want = "any " + at
			}
			if item[method] != nil && !slices.Contains(named, want) {
				t.Errorf("docs/api.md has no row of %s", want)
			}
		}
	}
}
