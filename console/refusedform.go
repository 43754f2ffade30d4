package console

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// refusedForm is a form that was sent and refused. It is filled in on the finished page, so every form of every page stays as it was
// sent, without a word about that in its template.
type refusedForm struct {
	action, method string
	typed          *fasthttp.Args
	problem        *problem
	undone         string // as a page has it; "" for a search
	once           string // the idempotency key that it keeps; "" for a new one
	here           string // the address of its page, for the script; "" if the browser shows it already
}

// errFormGone is that a page does not have the form, or that a search has no field at fault.
var errFormGone = errors.New("the page does not have the form")

// fillIn returns the page with the form as it was sent, the fields at fault marked, and the focus on the first of them or else on the
// message. Secrets stay empty. Errors: errFormGone.
func (f refusedForm) fillIn(page []byte) ([]byte, error) {
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		return nil, err
	}
	form := find(root, func(n *html.Node) bool {
		return n.DataAtom == atom.Form && attribute(n, "action") == f.action && attribute(n, "method") == f.method
	})
	if form == nil {
		return nil, errFormGone
	}
	controls := controlsOf(form)
	wrong := f.problem.faults(func(field string) bool { return controls[field] != nil })
	if f.method == "get" && len(wrong) == 0 {
		return nil, errFormGone
	}
	openAbove(form)
	set(form, "data-kept", "") // a refresh of the page leaves it as it is
	for name, control := range controls {
		if f.typed.Has(name) {
			fill(control, strings.ToValidUTF8(string(f.typed.Peek(name)), "\uFFFD"))
		}
	}
	if once := find(form, func(n *html.Node) bool { return attribute(n, "name") == "once" }); f.once != "" && once != nil {
		set(once, "value", f.once)
	}
	for _, one := range wrong {
		mark(controls[one.Field], one)
	}
	f.tell(root, controls, wrong)
	var filled bytes.Buffer
	err = html.Render(&filled, root)
	return filled.Bytes(), err
}

// tell writes the message of the page with the labels of the fields, and sets the focus.
func (f refusedForm) tell(root *html.Node, controls map[string]*html.Node, wrong []fault) {
	if body := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Body }); f.here != "" {
		set(body, "data-here", f.here)
	}
	message := find(root, func(n *html.Node) bool { return n.DataAtom == atom.Div && attribute(n, "role") == "alert" })
	if said := find(message, func(n *html.Node) bool { return n.DataAtom == atom.P }); said != nil {
		setText(said, strings.TrimSpace(f.undone+" "+f.problem.textWith(func(field string) string {
			if control := controls[fieldNamed(field, func(name string) bool { return controls[name] != nil })]; control != nil {
				return labelOf(control)
			}
			return field
		})))
	}
	if len(wrong) > 0 {
		set(controls[wrong[0].Field], "autofocus", "")
	} else if message != nil {
		set(message, "tabindex", "-1")
		set(message, "autofocus", "")
	}
}

// controlsOf returns the fields of a form that people see, by name.
func controlsOf(form *html.Node) map[string]*html.Node {
	controls := map[string]*html.Node{}
	for n := range form.Descendants() {
		isField := n.DataAtom == atom.Input || n.DataAtom == atom.Select || n.DataAtom == atom.Textarea
		if name := attribute(n, "name"); isField && name != "" && attribute(n, "type") != "hidden" {
			controls[name] = n
		}
	}
	return controls
}

// fill gives a field its text, and opens what hides one. A secret is not shown again.
func fill(control *html.Node, text string) {
	switch {
	case attribute(control, "type") == "password" || has(control, "readonly"):
		return
	case control.DataAtom == atom.Select:
		for option := range control.Descendants() {
			if option.DataAtom == atom.Option {
				unset(option, "selected")
				if attribute(option, "value") == text {
					set(option, "selected", "")
				}
			}
		}
	case control.DataAtom == atom.Textarea:
		setText(control, text)
	default:
		set(control, "value", text)
		if _, err := time.Parse(time.DateOnly, text); err != nil && attribute(control, "type") == "date" {
			set(control, "type", "text") // a browser drops what is no date
		}
	}
	if text != "" {
		openAbove(control)
	}
}

// mark says at a field what is wrong with it, to the eye and to a screen reader.
func mark(control *html.Node, wrong fault) {
	id := "wrong-" + wrong.Field
	set(control, "aria-invalid", "true")
	set(control, "aria-describedby", strings.TrimSpace(attribute(control, "aria-describedby")+" "+id))
	openAbove(control)
	label := control
	if above := labelAbove(control); above != nil {
		label = above
	}
	group := &html.Node{Type: html.ElementNode, DataAtom: atom.Div, Data: "div", Attr: []html.Attribute{{Key: "class", Val: "field"}}}
	text := &html.Node{Type: html.ElementNode, DataAtom: atom.P, Data: "p", Attr: []html.Attribute{{Key: "class", Val: "wrong"}, {Key: "id", Val: id}}}
	setText(text, sentence(strings.TrimSuffix(wrong.Message, "."))+".")
	label.Parent.InsertBefore(group, label)
	label.Parent.RemoveChild(label)
	group.AppendChild(text)
	group.AppendChild(label)
}

// labelOf returns the name that people read at a field, without what follows a comma.
func labelOf(control *html.Node) string {
	label := labelAbove(control)
	if label == nil {
		return attribute(control, "name")
	}
	var text strings.Builder
	for n := range label.Descendants() {
		if n.Type == html.TextNode && (n.Parent.DataAtom == atom.Label || n.Parent.DataAtom == atom.Strong) {
			text.WriteString(n.Data)
		}
	}
	name, _, _ := strings.Cut(text.String(), ",")
	return strings.Join(strings.Fields(name), " ")
}

func labelAbove(control *html.Node) *html.Node {
	for n := range control.Ancestors() {
		if n.DataAtom == atom.Label {
			return n
		}
	}
	return nil
}

// openAbove opens what hides a part of a page.
func openAbove(part *html.Node) {
	for n := range part.Ancestors() {
		if n.DataAtom == atom.Details {
			set(n, "open", "")
		}
	}
}

// find returns the first node below one that is so, nil for none.
func find(below *html.Node, is func(*html.Node) bool) *html.Node {
	if below == nil {
		return nil
	}
	for n := range below.Descendants() {
		if is(n) {
			return n
		}
	}
	return nil
}

func attribute(node *html.Node, name string) string {
	for _, a := range node.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func has(node *html.Node, name string) bool {
	return slices.ContainsFunc(node.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func set(node *html.Node, name, value string) {
	unset(node, name)
	node.Attr = append(node.Attr, html.Attribute{Key: name, Val: value})
}

func unset(node *html.Node, name string) {
	node.Attr = slices.DeleteFunc(node.Attr, func(a html.Attribute) bool { return a.Key == name })
}

func setText(node *html.Node, text string) {
	for node.FirstChild != nil {
		node.RemoveChild(node.FirstChild)
	}
	node.AppendChild(&html.Node{Type: html.TextNode, Data: text})
}
