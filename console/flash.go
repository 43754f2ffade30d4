package console

import (
	"bytes"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// flash is a message for the next page: what was done or not, and a credential that is shown once.
type flash struct {
	Failed bool   `json:"failed,omitempty"`
	Text   string `json:"text"`
	Label  string `json:"label,omitempty"`
	Secret string `json:"secret,omitempty"`
	Owner  []byte `json:"owner"` // the sign-in
	Made   int64  `json:"made"`
	Place  string `json:"place"` // the path that shows it
}

func (c *Console) setFlash(ctx *fasthttp.RequestCtx, s signIn, to string, message flash) error {
	message.Owner, message.Made = s.ID, time.Now().Unix()
	message.Place, _, _ = strings.Cut(to, "?")
	for {
		text, err := cookieText(message)
		if err != nil {
			return err
		}
		if len(text) <= mostCookie || message.Text == "" {
			break
		}
		cut := strings.TrimSuffix(message.Text, "…")
		if message.Text = strings.ToValidUTF8(cut[:len(cut)*3/4], ""); message.Text != "" {
			message.Text += "…"
		}
	}
	return c.setCookie(ctx, flashCookie, message, flashTime)
}

// takeFlash returns the message for this page, nil for none, and makes the browser forget it.
func (c *Console) takeFlash(ctx *fasthttp.RequestCtx, s signIn) *flash {
	if c.cookie(ctx, flashCookie) == "" || !ctx.IsGet() {
		return nil
	}
	var message flash
	err := c.openCookie(ctx, flashCookie, &message)
	if err == nil && message.Place != string(ctx.URI().PathOriginal()) {
		return nil // another tab's page
	}
	c.dropCookie(ctx, flashCookie)
	if err != nil || !bytes.Equal(message.Owner, s.ID) || message.isOver(time.Now()) {
		return nil
	}
	return &message
}

// isOver reports whether it was made too long ago: a copy of the cookie shows nothing later.
func (f flash) isOver(now time.Time) bool { return now.Sub(time.Unix(f.Made, 0)) > flashTime }
