package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestACopyOfAMessageShowsNothingLater(t *testing.T) {
	t.Parallel()
	w, b := visited(t, viewer)
	var signed signIn
	text := must(w.console.host.OpenCookie(signInCookie, b.cookies[signInCookie].Value))(t)
	must(0, json.Unmarshal(text, &signed))(t)
	for age, shown := range map[time.Duration]bool{0: true, 2 * flashTime: false} {
		message := flash{Text: "It is done.", Owner: signed.ID, Made: time.Now().Add(-age).Unix(), Place: agents}
		sealed := must(w.console.host.SealCookie(flashCookie, must(cookieText(message))(t)))(t)
		b.cookies[flashCookie] = &http.Cookie{Name: flashCookie, Value: sealed}
		if got := strings.Contains(b.get(agents).words(), "It is done."); got != shown {
			t.Errorf("after %s: shown %t", age, got)
		}
	}
}

func TestASignInThatWasReplacedMeanwhileIsNotDropped(t *testing.T) {
	t.Parallel()
	w, b := visited(t, admin)
	path := apiKeys + "/" + w.org
	before := *b.cookies[signInCookie]
	b.send(b.get(apiKeys), path+"/rotate", "confirm", "rotate")
	late := w.browser(t)
	late.cookies[signInCookie] = &before // requests that were under way
	for _, got := range []*answer{late.get(agents), late.post(agents, "name", "x"), late.get(stopPath + "/progress")} {
		if set := got.header.Values("Set-Cookie"); len(set) > 0 {
			t.Errorf("%s: %v", got.what, set)
		}
	}
	late.get(Prefix).says("API key")
	if len(late.cookies) > 0 {
		t.Error("the form leaves the cookie")
	}
}
