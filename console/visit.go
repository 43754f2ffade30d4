package console

import (
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/pages"
)

// visit is one request of a signed-in viewer.
type visit struct {
	console   *Console
	ctx       *fasthttp.RequestCtx
	page      *page
	params    map[string]string
	api       api
	signIn    signIn
	who       pages.KeyIdentity
	now       time.Time
	live      string // address of the live updates of the page that it shows; "" for none
	isRefresh bool   // the browser shows the page already

	path  string         // of the page
	query *fasthttp.Args // of its address
	said  *flash         // a message that the page shows instead of the cookie's; nil for none
}

// enter returns the visit of the signed-in viewer. It is nil without a sign-in: then it leads to the sign-in, or returns an error.
// The store says each time whether the API key lives, and its role.
func (c *Console) enter(ctx *fasthttp.RequestCtx, p *page) (*visit, error) {
	now := time.Now()
	signed, err := c.openSignIn(ctx, now)
	if errors.Is(err, errSignedOut) {
		return nil, c.leadToSignIn(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	v := &visit{console: c, ctx: ctx, page: p, signIn: signed, now: now, api: api{host: c.host, ctx: ctx, key: signed.APIKey}}
	v.isRefresh = len(ctx.Request.Header.Peek(refreshHeader)) > 0
	v.path, v.query = string(ctx.URI().PathOriginal()), ctx.QueryArgs()
	err = c.host.Identify(ctx, signed.APIKey, func(r pages.Reply) error { return decodeReply(r, &v.who) })
	if isUnauthorized(err) || p.stream && isOver(err) || err == nil && v.who.Replaced && !p.replays {
		return nil, c.leadToSignIn(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}

// serve lets the page answer, once the viewer may have it. A form that failed stays open.
func (c *Console) serve(v *visit) error {
	isChange := v.page.method != fasthttp.MethodGet
	if isChange && !v.signIn.sent(v.ctx) {
		return errCSRF
	}
	if !v.has(v.page.role) {
		c.showProblem(v.ctx, v, &problem{Status: fasthttp.StatusForbidden, Code: "insufficient_role", RequiredRole: string(v.page.role)})
		return nil
	}
	err := v.handle()
	switch {
	case err == nil:
	case isUnauthorized(err): // the key has ended since enter
		return c.leadToSignIn(v.ctx, v.page)
	case isChange && problemOf(err).Code != "insufficient_role":
		return v.refuse(c.explain(err))
	case v.refuseSearch(problemOf(err)):
	default:
		c.showProblem(v.ctx, v, c.explain(err))
	}
	return nil
}

// handle lets the page answer, unless the viewer was to type a word and typed another.
func (v *visit) handle() error {
	if word := v.page.confirm; word != "" && !strings.EqualFold(v.form("confirm"), word) {
		return invalid("to confirm it, type " + word).at("confirm")
	}
	if v.isRefresh && !v.page.stream {
		return v.handleRefresh()
	}
	return v.page.handle(v)
}

// has reports whether the viewer's role may do what this role may.
func (v *visit) has(role redisstore.Role) bool { return rank(v.who.Role) >= rank(role) }

func rank(role redisstore.Role) int {
	switch role {
	case redisstore.Viewer:
		return 1
	case redisstore.Operator:
		return 2
	}
	return 3
}

// queryParam returns a parameter of the query.
func (v *visit) queryParam(name string) string { return string(v.query.Peek(name)) }

// form returns a field of the form, without the white space around it.
func (v *visit) form(name string) string {
	return strings.TrimSpace(string(v.ctx.PostArgs().Peek(name)))
}

// once returns the idempotency key of the form.
func (v *visit) once() string {
	if key := v.form("once"); isID(key) {
		return key
	}
	return ""
}

// done leads to a page that says what was done.
func (v *visit) done(to, text string) error { return v.leave(to, flash{Text: text}) }

// reveal leads to a page that shows a credential, once.
func (v *visit) reveal(to, text, label, credential string) error {
	return v.leave(to, flash{Text: text, Label: label, Secret: credential})
}

// leave leads to a page of the console with a message.
func (v *visit) leave(to string, message flash) error {
	if err := v.console.setFlash(v.ctx, v.signIn, to, message); err != nil {
		return err
	}
	redirect(v.ctx, to)
	return nil
}

// back returns the page with the form that was sent.
func (v *visit) back() string {
	if to := v.form("back"); isOwnPath(to) && len(to) <= mostBack {
		return to
	}
	return Prefix
}

// mostBack bounds the address to come back to, which a message names.
const mostBack = 1000 // bytes

// isOwnPath reports whether a text is a path of these pages, with a query or without.
func isOwnPath(to string) bool {
	u, err := url.Parse(to)
	return err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && u.Fragment == "" &&
		(u.Path == Prefix || strings.HasPrefix(u.Path, Prefix+"/")) && !strings.ContainsAny(to, "\\\r\n") && !strings.Contains(u.Path, "..")
}

// redirect is 303: the browser gets the page, and reloading it repeats no change.
func redirect(ctx *fasthttp.RequestCtx, to string) {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, to)
	ctx.SetStatusCode(fasthttp.StatusSeeOther)
}

// keyCheck is the last check of an API key, which the viewers of a follower share who signed in with it.
type keyCheck struct {
	mu   sync.Mutex // held while the store is asked
	at   time.Time
	seen int64 // number of the last event before it
	err  error
}

// of checks the sign-in of a visit that lasts. It asks the store when an event was sent since the last check, the follower has ended, or
// the check is old: recheckTime for a sign-in that lived, and a tick otherwise. Errors: errSignedOut and those of isOver when the sign-in
// is over; any other when that is not known.
func (c *keyCheck) of(v *visit, f *follower, now time.Time) error {
	if v.signIn.isOver(now) {
		return errSignedOut
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := f.lastSeen()
	lasts := recheckTime
	if c.err != nil {
		lasts = tick
	}
	if seen == c.seen && now.Sub(c.at) < lasts {
		return c.err
	}
	var who pages.KeyIdentity
	err := v.console.host.Identify(nil, v.signIn.APIKey, func(r pages.Reply) error { return decodeReply(r, &who) })
	if err == nil && who.Replaced {
		err = errSignedOut
	}
	c.at, c.seen, c.err = now, seen, err
	return err
}
