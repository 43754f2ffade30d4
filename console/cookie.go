package console

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/pages"
)

const (
	signInCookie = "remit_console"
	flashCookie  = "remit_flash"
	// hostPrefix begins a cookie's name over HTTPS: browsers let only this host set it (RFC 6265bis §4.1.3.2).
	hostPrefix = "__Host-"

	signInTime = 8 * time.Hour
	flashTime  = time.Minute // for which the next page can show it
)

// signIn is what the cookie of a signed-in browser holds, sealed.
type signIn struct {
	APIKey string `json:"key"`
	ID     []byte `json:"id"` // random: CSRF tokens and flashes belong to it
	Began  int64  `json:"began"`
}

func newSignIn(apiKey string, now time.Time) signIn {
	s := signIn{APIKey: apiKey, ID: make([]byte, 16), Began: now.Unix()}
	rand.Read(s.ID) // never fails
	return s
}

// isOver reports whether it began too long ago, or in the future.
func (s signIn) isOver(now time.Time) bool {
	age := now.Sub(time.Unix(s.Began, 0))
	return age < -time.Minute || age >= signInTime
}

// csrf returns the token that every change of this sign-in carries.
func (s signIn) csrf() string {
	mac := hmac.New(sha256.New, s.ID)
	mac.Write([]byte("remit console csrf"))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// sent reports whether a form carries the token of this sign-in.
func (s signIn) sent(ctx *fasthttp.RequestCtx) bool {
	return hmac.Equal(ctx.PostArgs().Peek("csrf"), []byte(s.csrf()))
}

// openSignIn returns the sign-in of a request. Errors: errSignedOut, pages.ErrNoKeys.
func (c *Console) openSignIn(ctx *fasthttp.RequestCtx, now time.Time) (signIn, error) {
	var s signIn
	if err := c.openCookie(ctx, signInCookie, &s); err != nil {
		if errors.Is(err, pages.ErrNoKeys) {
			return signIn{}, err
		}
		return signIn{}, errSignedOut
	}
	if s.isOver(now) || len(s.ID) == 0 {
		return signIn{}, errSignedOut
	}
	return s, nil
}

// openCookie refuses a request with two cookies of a name: another host or port of this site may have set one of them.
func (c *Console) openCookie(ctx *fasthttp.RequestCtx, name string, into any) error {
	given := 0
	for key := range ctx.Request.Header.Cookies() {
		if string(key) == c.cookieName(ctx, name) {
			given++
		}
	}
	if given > 1 {
		return errSignedOut
	}
	content, err := c.host.OpenCookie(name, c.cookie(ctx, name))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, into)
}

// cookieName returns a cookie's name as the browser has it.
func (c *Console) cookieName(ctx *fasthttp.RequestCtx, name string) string {
	if c.host.IsHTTPS(ctx) {
		return hostPrefix + name
	}
	return name
}

// cookie returns the sealed text of a cookie, "" for none.
func (c *Console) cookie(ctx *fasthttp.RequestCtx, name string) string {
	return string(ctx.Request.Header.Cookie(c.cookieName(ctx, name)))
}

// setCookie gives the browser a sealed cookie that only these pages get, and no script.
func (c *Console) setCookie(ctx *fasthttp.RequestCtx, name string, content any, lives time.Duration) error {
	text, err := cookieText(content)
	if err != nil {
		return err
	}
	sealed, err := c.host.SealCookie(name, text)
	if err != nil {
		return err
	}
	c.writeCookie(ctx, name, sealed, int(lives/time.Second))
	return nil
}

// mostCookie bounds the content of a cookie: browsers drop one that has more than 4 kB, sealed and with its name.
const mostCookie = 2800 // bytes

func cookieText(content any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(content)
	return text.Bytes(), err
}

// dropCookie makes the browser forget a cookie.
func (c *Console) dropCookie(ctx *fasthttp.RequestCtx, name string) { c.writeCookie(ctx, name, "", -1) }

func (c *Console) writeCookie(ctx *fasthttp.RequestCtx, name, value string, maxAge int) {
	cookie := fasthttp.AcquireCookie()
	defer fasthttp.ReleaseCookie(cookie)
	cookie.SetKey(c.cookieName(ctx, name))
	cookie.SetValue(value)
	cookie.SetPath(Prefix)
	if c.host.IsHTTPS(ctx) {
		cookie.SetPath("/") // as the prefix wants; nothing but these pages reads it
	}
	cookie.SetHTTPOnly(true)
	cookie.SetSecure(c.host.IsHTTPS(ctx))
	cookie.SetSameSite(fasthttp.CookieSameSiteStrictMode)
	if maxAge < 0 {
		cookie.SetExpire(fasthttp.CookieExpireDelete)
	} else {
		cookie.SetMaxAge(maxAge)
	}
	ctx.Response.Header.SetCookie(cookie)
}
