package console

import (
	"regexp"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/pages"
)

// signInPage is what the form needs.
type signInPage struct {
	To      string // where it leads; "" for the overview
	Problem string // why the last attempt failed; "" for none
	Wrong   bool   // the API key is what is wrong

	Address  string // of the API, for commands; "" for one that is not known here
	Creation OrganizationCreation
}

// leadToSignIn shows the form in place of the overview, and leads every other page to it. Of a change it says that it was not made.
// A stream tells the script of its page, which reloads that: a browser gives up a stream that is anything else.
func (c *Console) leadToSignIn(ctx *fasthttp.RequestCtx, p *page) error {
	if p.stream {
		ctx.Response.Header.SetContentType("text/event-stream")
		ctx.SetBodyString(streamOver)
		return nil
	}
	asked := string(ctx.URI().PathOriginal())
	if asked == Prefix {
		if c.cookie(ctx, signInCookie) != "" { // nowhere else: another answer may have just replaced it
			c.dropCookie(ctx, signInCookie)
		}
		return c.showSignIn(ctx, fasthttp.StatusOK, signInPage{To: ownPath(string(ctx.QueryArgs().Peek("to")))})
	}
	if p.undone != "" {
		form := signInPage{Problem: notNow(p), To: ownPath(string(ctx.PostArgs().Peek("back")))}
		return c.showSignIn(ctx, fasthttp.StatusUnauthorized, form)
	}
	if text := string(ctx.URI().QueryString()); text != "" {
		asked += "?" + text
	}
	redirect(ctx, query(Prefix, "to", ownPath(asked)))
	return nil
}

// notNow says that a change was not made. The same form may have made it before, also when that is what ended the sign-in.
func notNow(p *page) string {
	return strings.TrimSuffix(p.undone, ".") + " by this: the sign-in had ended. If you sent the form before, it may have been done then. " +
		"Sign in, and look before you do it again."
}

// isPlainHost reports whether a host, which the request names, can stand in a shell command.
func isPlainHost(host []byte) bool { return plainHost.Match(host) }

var plainHost = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]+)?$|^\[[0-9A-Fa-f:.]+\](:[0-9]+)?$`)

func ownPath(to string) string {
	if isOwnPath(to) {
		return to
	}
	return ""
}

func (c *Console) showSignIn(ctx *fasthttp.RequestCtx, status int, form signInPage) error {
	form.Creation = c.settings.Creation
	if !c.host.ServesPagesApart() && isPlainHost(ctx.Host()) {
		form.Address = c.ownOrigin(ctx)
	}
	return c.render(ctx, nil, status, "signin", "Sign in", form)
}

// beginSignIn checks the API key in the form and gives the browser its cookie. The key goes nowhere else.
func (c *Console) beginSignIn(ctx *fasthttp.RequestCtx) error {
	form := signInPage{To: ownPath(string(ctx.PostArgs().Peek("to")))}
	apiKey := strings.TrimSpace(string(ctx.PostArgs().Peek("api_key")))
	var who pages.KeyIdentity
	err := c.host.SignIn(ctx, apiKey, func(r pages.Reply) error { return decodeReply(r, &who) })
	switch {
	case isUnauthorized(err):
		form.Problem = "You are not signed in: this is not a live API key."
	case err != nil:
		form.Problem = "You are not signed in. " + problemOf(err).text()
	case who.Replaced:
		form.Problem = "You are not signed in: a rotation has replaced this API key. Use the new one."
		err = &problem{Status: fasthttp.StatusUnauthorized}
	}
	if err != nil {
		p := problemOf(err)
		form.Wrong = p.Status < fasthttp.StatusInternalServerError && p.Code != "rate_limited"
		tellRetryAfter(ctx, p)
		return c.showSignIn(ctx, p.Status, form)
	}
	if err := c.setCookie(ctx, signInCookie, newSignIn(apiKey, time.Now()), signInTime); err != nil {
		return err
	}
	if form.To == "" {
		form.To = Prefix
	}
	redirect(ctx, form.To)
	return nil
}

const signOutPath = Prefix + "/sign-out"

// endSignIn makes the browser forget the sign-in. It asks nothing of the store: one can sign out whatever is down.
func (c *Console) endSignIn(ctx *fasthttp.RequestCtx) error {
	signed, err := c.openSignIn(ctx, time.Now())
	if err == nil && !signed.sent(ctx) {
		return errCSRF
	}
	c.dropCookie(ctx, signInCookie)
	c.dropCookie(ctx, flashCookie)
	ctx.Response.Header.Set("Clear-Site-Data", `"cache"`)
	redirect(ctx, Prefix)
	return nil
}
