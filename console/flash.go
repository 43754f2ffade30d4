package console

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"
)

// flash is a message for the next page: what was done or not, and a credential that is shown once.
type flash struct {
	Failed bool   `json:"failed,omitempty"`
	Text   string `json:"text"`
	Label  string `json:"label,omitempty"`
	Secret string `json:"secret,omitempty"`
	Owner  []byte `json:"owner"` // the sign-in
}

// maxFlash bounds a message, because a cookie has at most 4 kB.
const maxFlash = 800 // bytes

func (c *Console) setFlash(ctx *fasthttp.RequestCtx, s signIn, message flash) error {
	message.Owner = s.ID
	if len(message.Text) > maxFlash {
		message.Text = strings.ToValidUTF8(message.Text[:maxFlash], "") + "…"
	}
	return c.setCookie(ctx, flashCookie, message, flashTime)
}

// takeFlash returns the message for this page, nil for none, and makes the browser forget it.
func (c *Console) takeFlash(ctx *fasthttp.RequestCtx, s signIn) *flash {
	if len(ctx.Request.Header.Cookie(flashCookie)) == 0 {
		return nil
	}
	c.dropCookie(ctx, flashCookie)
	var message flash
	if c.openCookie(ctx, flashCookie, &message) != nil || !bytes.Equal(message.Owner, s.ID) {
		return nil
	}
	return &message
}
