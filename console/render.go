package console

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

//go:embed templates
var templateFiles embed.FS

// layout are the templates that every page has; each other file is one page.
var layout = []string{"templates/layout.html", "templates/parts.html", "templates/newsession.html"}

func parseTemplates(a *assets) map[string]*template.Template {
	functions := template.FuncMap{
		"asset": a.path, "usd": usd, "count": count, "stamp": stampOf, "brief": brief, "short": short, "json": indented,
		"plural": plural, "once": uuid.NewString, "dict": dict, "mayRollBack": mayRollBack, "excerpt": excerpt, "head": head,
	}
	base := template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, layout...))
	parsed := map[string]*template.Template{}
	files, err := templateFiles.ReadDir("templates")
	if err != nil {
		panic(err) // the directory is embedded
	}
	for _, file := range files {
		if name := "templates/" + file.Name(); !slices.Contains(layout, name) {
			own := template.Must(template.Must(base.Clone()).ParseFS(templateFiles, name))
			parsed[strings.TrimSuffix(path.Base(name), ".html")] = own
		}
	}
	return parsed
}

// dict returns the arguments of a part of a page: name, value, name, value, …
func dict(pairs ...any) (map[string]any, error) {
	if len(pairs)%2 != 0 {
		return nil, errors.New("dict needs a value for each name")
	}
	made := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		name, isText := pairs[i].(string)
		if !isText {
			return nil, errors.New("dict needs texts as names")
		}
		made[name] = pairs[i+1]
	}
	return made, nil
}

// view is what every template gets: the page, and Data of the page's own.
type view struct {
	Title string
	Nav   []navigation
	Flash *flash
	Data  any
	Live  string // address of the page's live updates; "" for none

	SignedIn     bool
	Organization string
	Role         string
	CSRF         string
	Here         string // the page's own path and query, to come back to after a change

	MayOperate, MayAdmin bool

	Defaults SessionDefaults
}

// navigation is a link to a page.
type navigation struct {
	Path, Name string
	Current    bool
	Waiting    int64 // things on it that wait for the viewer
}

// show answers with a page.
func (v *visit) show(name, title string, data any) error {
	return v.console.render(v.ctx, v, fasthttp.StatusOK, name, title, data)
}

// render writes a page; v is nil without a sign-in.
func (c *Console) render(ctx *fasthttp.RequestCtx, v *visit, status int, name, title string, data any) error {
	shown := view{Title: title, Data: data}
	if v != nil {
		v.fill(&shown)
	}
	var page bytes.Buffer
	if err := c.templates[name].ExecuteTemplate(&page, "layout", shown); err != nil {
		return err
	}
	ctx.SetStatusCode(status)
	ctx.Response.Header.SetContentType("text/html; charset=utf-8")
	ctx.Response.SetBodyRaw(page.Bytes())
	return nil
}

func (v *visit) fill(shown *view) {
	shown.SignedIn, shown.Organization, shown.Role = true, v.who.Name, string(v.who.Role)
	shown.CSRF, shown.Flash = v.signIn.csrf(), v.said
	if v.said == nil && !v.isRefresh { // the message is for the page that the browser loads next
		shown.Flash = v.console.takeFlash(v.ctx, v.signIn)
	}
	shown.MayOperate, shown.MayAdmin = v.has(operator), v.has(admin)
	shown.Live, shown.Defaults = v.live, v.console.settings.Defaults
	here := v.path
	shown.Here = here
	if text := v.query.QueryString(); len(text) > 0 {
		shown.Here += "?" + string(text)
	}
	for _, p := range v.console.router.pages {
		if p.nav != "" {
			current := here == p.path || p.path != Prefix && strings.HasPrefix(here, p.path+"/")
			link := navigation{Path: p.path, Name: p.nav, Current: current}
			if p.path == requestsPath {
				link.Waiting = v.console.followers.waiting(v.who.Organization)
			}
			shown.Nav = append(shown.Nav, link)
		}
	}
}

// showProblem answers with a page that says what is wrong.
func (c *Console) showProblem(ctx *fasthttp.RequestCtx, v *visit, p *problem) {
	if p.methods != "" {
		ctx.Response.Header.Set(fasthttp.HeaderAllow, p.methods)
	}
	tellRetryAfter(ctx, p)
	shown := struct {
		Status int
		Text   string
		Change bool
	}{p.Status, p.text(), ctx.IsPost()}
	if c.render(ctx, v, p.Status, "problem", http.StatusText(p.Status), shown) != nil {
		ctx.ResetBody()
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	}
}

func tellRetryAfter(ctx *fasthttp.RequestCtx, p *problem) {
	if p.retryAfter != "" {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, p.retryAfter)
	}
}
