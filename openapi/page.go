package openapi

import (
	"bytes"
	"html/template"
	"strings"
)

// render writes the page. The template escapes everything except the style and the script.
func render(a api, style, script string) ([]byte, error) {
	page, err := template.New("page").Funcs(template.FuncMap{"marked": marked, "lower": strings.ToLower}).Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	var html bytes.Buffer
	err = page.Execute(&html, struct {
		api
		Style       template.CSS
		Script      template.JS
		Preparation string
	}{a, template.CSS(style), template.JS(script), preparation})
	return html.Bytes(), err
}

// marked writes the Markdown that descriptions use: paragraphs, lists of -, `code` and *emphasis*.
func marked(text string) template.HTML {
	var html strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		items, isList := strings.CutPrefix(block, "- ")
		if !isList {
			html.WriteString("<p>" + spans(block) + "</p>")
			continue
		}
		html.WriteString("<ul>")
		for item := range strings.SplitSeq(items, "\n- ") {
			html.WriteString("<li>" + spans(item) + "</li>")
		}
		html.WriteString("</ul>")
	}
	return template.HTML(html.String())
}

func spans(text string) string {
	var html strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			html.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
			continue
		}
		for j, plain := range strings.Split(template.HTMLEscapeString(part), "*") {
			if j%2 == 1 {
				plain = "<em>" + plain + "</em>"
			}
			html.WriteString(plain)
		}
	}
	return html.String()
}
