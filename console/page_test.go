package console

import (
	"iter"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// elements yields the elements of a page with this name, "" for all.
func (a *answer) elements(name string) iter.Seq[*html.Node] {
	a.t.Helper()
	if a.page == nil {
		a.t.Fatalf("%s: %d is no page", a.what, a.status)
	}
	return func(yield func(*html.Node) bool) {
		for node := range a.page.Descendants() {
			if node.Type == html.ElementNode && (name == "" || node.Data == name) && !yield(node) {
				return
			}
		}
	}
}

// words returns the text of a page with single spaces.
func (a *answer) words() string {
	if a.page == nil {
		return a.text
	}
	return textOf(a.page)
}

func textOf(node *html.Node) string {
	var text strings.Builder
	for n := range node.Descendants() {
		if n.Type == html.TextNode && n.Parent.Data != "title" {
			text.WriteString(n.Data + " ")
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
}

// form returns the fields of the first form that is sent to this path.
func (a *answer) form(path string) url.Values {
	a.t.Helper()
	return fieldsOf(a.formNode(path, "post"))
}

func (a *answer) hasForm(path string) bool {
	return slices.ContainsFunc(slices.Collect(a.elements("form")), func(form *html.Node) bool { return attribute(form, "action") == path })
}

func fieldsOf(form *html.Node) url.Values {
	fields := url.Values{}
	for n := range form.Descendants() {
		if n.Type != html.ElementNode || attribute(n, "name") == "" {
			continue
		}
		switch n.Data {
		case "input":
			if kind := attribute(n, "type"); kind != "checkbox" && kind != "radio" || has(n, "checked") {
				fields.Set(attribute(n, "name"), attribute(n, "value"))
			}
		case "select":
			fields.Set(attribute(n, "name"), selected(n))
		case "textarea":
			text := ""
			for part := range n.Descendants() {
				text += part.Data
			}
			fields.Set(attribute(n, "name"), text)
		}
	}
	return fields
}

func selected(list *html.Node) (chosen string) {
	isFirst := true
	for n := range list.Descendants() {
		if n.Data == "option" && (isFirst || has(n, "selected")) {
			chosen, isFirst = attribute(n, "value"), false
		}
	}
	return chosen
}

func (a *answer) links() (to []string) {
	a.t.Helper()
	for link := range a.elements("a") {
		to = append(to, attribute(link, "href"))
	}
	return to
}
