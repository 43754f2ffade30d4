package openapi

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

// operationsOf returns the operations of the description, as "POST /v1/agents".
func operationsOf(t *testing.T) []string {
	t.Helper()
	value := must(parse(description))(t)
	var all []string
	paths := value.(object).object("paths")
	for _, path := range paths.names {
		for _, method := range paths.object(path).names {
			if slices.Contains(methods, method) {
				all = append(all, strings.ToUpper(method)+" "+path)
			}
		}
	}
	slices.Sort(all)
	return all
}

var (
	article  = regexp.MustCompile(`data-method="([A-Z]+)" data-path="([^"]+)"`)
	target   = regexp.MustCompile(`href="#([^"]+)"`)
	anchored = regexp.MustCompile(` id="([^"]+)"`)
)

func shownIn(html string) []string {
	var all []string
	for _, found := range article.FindAllStringSubmatch(html, -1) {
		all = append(all, found[1]+" "+found[2])
	}
	slices.Sort(all)
	return all
}

func TestThePageShowsEveryOperationAndItsLinksResolve(t *testing.T) {
	t.Parallel()
	html := string(Page().Body)
	if got, want := shownIn(html), operationsOf(t); !slices.Equal(got, want) {
		t.Errorf("the page shows\n%v, want\n%v", got, want)
	}
	there := map[string]bool{}
	for _, found := range anchored.FindAllStringSubmatch(html, -1) {
		if there[found[1]] {
			t.Errorf("two elements have the id %s", found[1])
		}
		there[found[1]] = true
	}
	for _, found := range target.FindAllStringSubmatch(html, -1) {
		if !there[found[1]] {
			t.Errorf("a link points to #%s, which does not exist", found[1])
		}
	}
	for _, unwanted := range []string{"<script src", "style=", "onclick=", "ZgotmplZ", "%!"} {
		if strings.Contains(html, unwanted) {
			t.Errorf("the page contains %s", unwanted)
		}
	}
}

func TestThePageShowsDefaultsAndOptionalBodies(t *testing.T) {
	t.Parallel()
	html := string(Page().Body)
	_, begin, _ := strings.Cut(html, `id="schema-NewTransaction"`)
	begin, _, _ = strings.Cut(begin, "</article>")
	for _, want := range []string{"0 to 1,000,000,000 (default 0)", "1 to 2,592,000 (default 300)", "boolean (default true)"} {
		if !strings.Contains(begin, want) {
			t.Errorf("NewTransaction lacks %q", want)
		}
	}
	for id, want := range map[string]bool{"charge": false, "endSession": true, "createAgent": false} {
		_, shown, _ := strings.Cut(html, `<article id="`+id+`"`)
		shown, _, _ = strings.Cut(shown, "</article>")
		if got := strings.Contains(shown, "<small>optional · application/json"); got != want {
			t.Errorf("%s: the page shows an optional body: %t, want %t", id, got, want)
		}
	}
	if tables, wide := strings.Count(html, "<table>"), strings.Count(html, `<div class="wide"><table>`); tables != wide {
		t.Errorf("%d of %d tables have no scroll container: the whole page scrolls on a phone", tables-wide, tables)
	}
}

func TestDescriptionsAreEscaped(t *testing.T) {
	t.Parallel()
	got := string(marked("a <b> & `<c>` *d*\n\n- <e>\n- `f`"))
	const want = "<p>a &lt;b&gt; &amp; <code>&lt;c&gt;</code> <em>d</em></p><ul><li>&lt;e&gt;</li><li><code>f</code></li></ul>"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
