package identity

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/valyala/fasthttp"
	"remit/internal/outbound"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

const (
	maxAudiences = 16  // of one agent
	maxJWKSURI   = 512 // bytes
)

// agentCredentialsRequest says what an agent authenticates with and which audiences its tokens are for. Null is none, and of audiences
// any.
type agentCredentialsRequest struct {
	Audiences    web.Nullable[[]string]       `json:"audiences"`
	JWKS         web.Nullable[jsontext.Value] `json:"jwks"`
	JWKSURI      web.Nullable[string]         `json:"jwks_uri"`
	DPoPRequired web.Optional[bool]           `json:"dpop_required"`
}

// check returns the changes that the request wants.
func (r *agentCredentialsRequest) check(v *web.Validation, allowPrivate bool) redisstore.AgentChanges {
	var c redisstore.AgentChanges
	if r.Audiences.Given {
		c.Audiences = new(validAudiences(v, r.Audiences.Value))
	}
	if r.JWKS.Given {
		c.JWKS = new(validKeySet(v, r.JWKS.Value))
	}
	if r.JWKSURI.Given {
		c.JWKSURI = new(validKeySetURI(v, r.JWKSURI.Value, allowPrivate))
	}
	c.DPoPRequired = r.DPoPRequired.Pointer()
	v.Require(r.JWKS.Value == nil || r.JWKSURI.Value == nil, "jwks_uri", "must not be given together with jwks")
	return c
}

// newAgent writes what the request says into a new agent.
func (r *agentCredentialsRequest) newAgent(v *web.Validation, agent *redisstore.Agent, allowPrivate bool) {
	c := r.check(v, allowPrivate)
	if c.Audiences != nil {
		agent.Audiences = *c.Audiences
	}
	if c.JWKS != nil {
		agent.JWKS = *c.JWKS
	}
	if c.JWKSURI != nil {
		agent.JWKSURI = *c.JWKSURI
	}
	agent.DPoPRequired = r.DPoPRequired.Value
}

func validAudiences(v *web.Validation, given *[]string) []string {
	if given == nil {
		return nil
	}
	v.Require(len(*given) <= maxAudiences, "audiences", "must have at most "+strconv.Itoa(maxAudiences)+" entries")
	seen := map[string]bool{}
	for i, audience := range *given {
		field := "audiences[" + strconv.Itoa(i) + "]"
		if err := access.CheckAudience(audience); err != nil {
			v.Add(field, err.Error())
		}
		v.Require(!seen[audience], field, "is given twice")
		seen[audience] = true
	}
	return append([]string{}, *given...)
}

func validKeySet(v *web.Validation, given *jsontext.Value) string {
	if given == nil {
		return ""
	}
	keys, err := token.ParseJWKS(*given)
	if refused, is := errors.AsType[*token.KeyError](err); is {
		v.Add("jwks.keys["+strconv.Itoa(refused.Index)+"]", refused.Reason)
		return ""
	}
	if err != nil {
		v.Add("jwks", strings.TrimPrefix(err.Error(), token.ErrKey.Error()+": "))
		return ""
	}
	return keys.Text()
}

func validKeySetURI(v *web.Validation, given *string, allowPrivate bool) string {
	if given == nil {
		return ""
	}
	if len(*given) > maxJWKSURI {
		v.Add("jwks_uri", "must have at most "+strconv.Itoa(maxJWKSURI)+" bytes")
	} else if err := outbound.CheckURL(*given, allowPrivate); err != nil {
		v.Add("jwks_uri", err.Error())
	}
	return *given
}

// hideQueries takes the queries off URLs where keys are published unless the API key is an admin's: a query may be a credential. Redis
// alone knows the role, and is asked only when a URL has a query.
func (h *Handlers) hideQueries(ctx *fasthttp.RequestCtx, key redisstore.APIKey, urls ...*string) {
	if !slices.ContainsFunc(urls, func(url *string) bool { return strings.Contains(*url, "?") }) {
		return
	}
	key.Needs = redisstore.Admin
	if _, err := h.Store.Organization(web.ReadContext(ctx), key); err == nil {
		return
	}
	for _, url := range urls {
		*url, _, _ = strings.Cut(*url, "?")
	}
}

// AgentCredentials is what an agent authenticates with and which audiences its tokens are for, as far as it is set.
type AgentCredentials struct {
	Audiences    *[]string      `json:"audiences,omitzero"` // absent for any; like the next two not in lists
	JWKS         jsontext.Value `json:"jwks,omitzero"`
	JWKSURI      string         `json:"jwks_uri,omitzero"`
	DPoPRequired bool           `json:"dpop_required,omitzero"`
	HasSecret    *bool          `json:"has_secret,omitzero"` // false or absent
}

func agentCredentialsOf(a redisstore.Agent) AgentCredentials {
	shown := AgentCredentials{JWKS: jsontext.Value(a.JWKS), JWKSURI: a.JWKSURI, DPoPRequired: a.DPoPRequired}
	if a.Audiences != nil {
		shown.Audiences = &a.Audiences
	}
	if a.JWKS == "" {
		shown.JWKS = nil
	}
	if a.NoSecret {
		shown.HasSecret = new(false)
	}
	return shown
}
