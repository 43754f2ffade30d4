package console

import (
	"github.com/valyala/fasthttp"
	"remit/client"
)

const apiKeys = Prefix + "/api-keys"

// apiKeysPage is the organization's API keys.
type apiKeysPage struct {
	Keys []client.APIKeyInfo
	Own  string // id of the key with which the viewer signed in
}

func showAPIKeys(v *visit) error {
	page := apiKeysPage{Own: v.who.Key.String()}
	if err := v.api.get("/v1/api-keys", &page.Keys); err != nil {
		return err
	}
	return v.show("apikeys", "API keys", page)
}

const apiKeyPath = "/v1/api-keys/{key}"

var deleteAPIKey = call{fasthttp.MethodDelete, apiKeyPath, nil, apiKeys, "The API key is deleted. Sign-ins with it have ended."}

func createAPIKey(v *visit) error {
	body := map[string]any{"name": v.form("name"), "role": v.form("role")}
	days, err := fields{"days": readCount}.read(v)
	if err != nil {
		return err
	}
	if n, given := days["days"].(int64); given {
		if n < 1 || n > maxKeyDays {
			return invalid("a key lives 1 to 3650 days").at("days")
		}
		body["expires_in_seconds"] = n * 24 * 60 * 60
	}
	var made client.APIKeyInfo
	if err := v.send(post, "/v1/api-keys", body, &made); err != nil {
		return err
	}
	return v.reveal(apiKeys, "The API key is created.", "API key", string(made.APIKey))
}

const maxKeyDays = 3650

// rotateAPIKey replaces a key. A viewer who replaces the own key goes on with the new one; every other sign-in with it has ended.
func rotateAPIKey(v *visit) error {
	if v.once() == "" {
		return errCSRF // every form has one
	}
	id := v.params["key"]
	if v.who.Replaced && id != v.who.Key.String() {
		return errSignedOut
	}
	var rotated client.RotatedKey
	if err := v.send(post, apiKeyPath+"/rotate", nil, &rotated); err != nil {
		return err
	}
	if id == v.who.Key.String() {
		if err := v.goOnWith(string(rotated.APIKey)); err != nil {
			return err
		}
	}
	return v.reveal(apiKeys, "The API key is replaced. Sign-ins to this console with the one before have ended.", "API key", string(rotated.APIKey))
}

// goOnWith signs the viewer in with the own key's successor. The time of the sign-in goes on.
func (v *visit) goOnWith(apiKey string) error {
	next := newSignIn(apiKey, v.now)
	next.Began = v.signIn.Began
	v.signIn = next
	return v.console.setCookie(v.ctx, signInCookie, next, signInTime)
}
