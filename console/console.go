package console

import (
	"html/template"
	"log/slog"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/pages"
)

// Prefix begins the path of every page.
const Prefix = "/console"

// Console answers requests for pages.
type Console struct {
	host      *pages.Host
	log       *slog.Logger
	router    *router
	templates map[string]*template.Template
	assets    *assets
	fleets    *fleets
	reports   *usageReports
	followers followers
	stops     stops
	settings  Settings
}

// Settings are what the pages say of the service's configuration.
type Settings struct {
	Creation OrganizationCreation
	Defaults SessionDefaults
}

// OrganizationCreation is who may create organizations: "open", "token" or "closed", as --organizations has it.
type OrganizationCreation string

// New returns the console of this host, for the Answer of a pages.Site.
func New(host *pages.Host, log *slog.Logger, settings Settings) *Console {
	c := &Console{host: host, log: log, settings: settings, assets: loadAssets(), fleets: newFleets(mostCached, host.Recover)}
	c.reports = newUsageReports(c.fleets.pool, host.Recover)
	c.followers.known, c.stops.known = map[uuid.UUID]*follower{}, map[uuid.UUID]*stopJob{}
	c.templates = parseTemplates(c.assets)
	c.router = newRouter(c.pages())
	return c
}

// Answer answers a request below Prefix.
func (c *Console) Answer(ctx *fasthttp.RequestCtx) {
	WriteHeaders(&ctx.Response.Header)
	if name, asks := assetName(ctx); asks {
		c.assets.answer(ctx, name)
		return
	}
	if err := c.answer(ctx); err != nil {
		c.showProblem(ctx, nil, c.explain(err))
	}
}

// explain returns the problem of an error, and logs an unexpected one.
func (c *Console) explain(err error) *problem {
	p := problemOf(err)
	if p.Code == codeInternal {
		c.log.Error("a page of the console failed", "cause", err)
	}
	return p
}

// answer finds the page, who asks for it, and whether they may.
func (c *Console) answer(ctx *fasthttp.RequestCtx) error {
	if err := c.checkRequest(ctx); err != nil {
		return err
	}
	page, params, err := c.router.find(string(ctx.Method()), string(ctx.URI().PathOriginal()))
	if err != nil {
		return err
	}
	if page.open != nil {
		return page.open(ctx)
	}
	v, err := c.enter(ctx, page)
	if v == nil {
		return err
	}
	v.params = params
	return c.serve(v)
}
