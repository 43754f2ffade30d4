package console

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// hostile are names that try to be more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, "javascript:alert(1)", "{{.CSRF}}", "</title></textarea></svg><script>",
	"\u202egnp.exe\u2066", `=HYPERLINK("https://evil.example","x")`, "<!--", "]]>", strings.Repeat("W", 200),
}

// TestNothingThatStrangersChooseIsMoreThanText puts hostile texts wherever a stranger's text is shown, and compares the pages'
// elements with those of the same pages with plain texts.
func TestNothingThatStrangersChooseIsMoreThanText(t *testing.T) {
	t.Parallel()
	w, b, plain := sampled(t, admin)
	for _, text := range hostile {
		ids := w.sampleOf(texts{text, text, text, text, text})
		for _, p := range w.console.pages() {
			if p.method != get || p.stream || !strings.Contains(p.path, "{") {
				continue
			}
			want, got := b.whole(plain.path(p.path)), b.whole(ids.path(p.path)).want(200)
			wantEqual(t, fmt.Sprintf("%s with %q has the elements", got.what, text), outline(got), outline(want))
			got.checkMarkup()
		}
		for _, path := range []string{Prefix, agents + "?sort=new", sessions, agents + "?q=%3Cscript%3Ealert(1)%3C/script%3E", Prefix + "/" + "x",
			requestsPath, requestsPath + "?agent=%3Cscript%3Ealert(1)%3C/script%3E", usagePath + "?group_by=agent,action_type",
			usagePath + "?from=%3Cscript%3Ealert(1)%3C/script%3E", usagePath + "?group_by=%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E"} {
			got := b.get(path)
			got.checkMarkup()
			for script := range got.elements("script") {
				wantEqual(t, path+" has only scripts of the console", strings.HasPrefix(attribute(script, "src"), assetPrefix), true)
			}
			for range got.elements("img") {
				t.Errorf("%s has an image", path)
			}
		}
	}
}

// outline returns the elements of a page with the names of their attributes, without the details that differ by nature.
func outline(a *answer) string {
	var text strings.Builder
	for node := range a.elements("") {
		drawing := func(n *html.Node) bool { return n.Data == "svg" || n.Data == "figure" }
		if drawing(node) || slices.ContainsFunc(slices.Collect(node.Ancestors()), drawing) {
			continue
		}
		text.WriteString(node.Data)
		for _, at := range node.Attr {
			text.WriteString(" " + at.Key)
		}
		text.WriteString("\n")
	}
	return text.String()
}
