package identity

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

const (
	maxIssuerDescription = 500 // characters
	maxIssuerRules       = 64
	maxRuleClaims        = 16
)

// trustedIssuerRequest creates a trusted issuer.
type trustedIssuerRequest struct {
	Issuer web.Optional[string] `json:"issuer"`
	changeTrustedIssuerRequest
}

// changeTrustedIssuerRequest changes a trusted issuer. Its name stays: another name is another issuer.
type changeTrustedIssuerRequest struct {
	JWKSURI     web.Optional[string]              `json:"jwks_uri"`
	JWKS        web.Optional[jsontext.Value]      `json:"jwks"`
	Rules       web.Optional[[]issuerRuleRequest] `json:"rules"`
	Description web.Optional[string]              `json:"description"`
}

type issuerRuleRequest struct {
	Agent  web.Optional[string]            `json:"agent_id"`
	Claims web.Optional[map[string]string] `json:"claims"`
}

func (h *Handlers) newTrustedIssuer(r *trustedIssuerRequest) (redisstore.TrustedIssuerSettings, error) {
	var v web.Validation
	v.Require(r.Issuer.Given, "issuer", "is required")
	if err := token.CheckIssuerName(r.Issuer.Value); r.Issuer.Given && err != nil {
		v.Add("issuer", err.Error())
	}
	v.Require(r.JWKSURI.Given || r.JWKS.Given, "jwks_uri", "is required, or jwks")
	v.Require(r.Rules.Given, "rules", "is required")
	settings := r.settings(&v, h.AllowPrivate)
	settings.Issuer = r.Issuer.Value
	return settings, v.Err()
}

func (r *changeTrustedIssuerRequest) read(allowPrivate bool) (redisstore.TrustedIssuerSettings, error) {
	var v web.Validation
	v.Require(r.JWKSURI.Given || r.JWKS.Given || r.Rules.Given || r.Description.Given, "",
		"name at least one of jwks_uri, jwks, rules and description")
	return r.settings(&v, allowPrivate), v.Err()
}

// settings returns what is given.
func (r *changeTrustedIssuerRequest) settings(v *web.Validation, allowPrivate bool) redisstore.TrustedIssuerSettings {
	settings := redisstore.TrustedIssuerSettings{JWKSURI: r.JWKSURI.Value, Description: r.Description.Value}
	v.Require(!r.JWKSURI.Given || !r.JWKS.Given, "jwks_uri", "must not be given together with jwks")
	if r.JWKSURI.Given {
		validKeySetURI(v, &r.JWKSURI.Value, allowPrivate)
	}
	if r.JWKS.Given {
		settings.JWKS = validKeySet(v, &r.JWKS.Value)
	}
	if r.Rules.Given {
		settings.Rules = validIssuerRules(v, r.Rules.Value)
	}
	v.Require(utf8.RuneCountInString(r.Description.Value) <= maxIssuerDescription, "description", "must have at most 500 characters")
	return settings
}

// apply writes what is given into the settings. Keys of one kind replace those of the other.
func (r *changeTrustedIssuerRequest) apply(settings *redisstore.TrustedIssuerSettings, given redisstore.TrustedIssuerSettings) {
	if r.JWKSURI.Given || r.JWKS.Given {
		settings.JWKSURI, settings.JWKS = given.JWKSURI, given.JWKS
	}
	if r.Rules.Given {
		settings.Rules = given.Rules
	}
	if r.Description.Given {
		settings.Description = given.Description
	}
}

// validIssuerRules reads the rules of a trusted issuer.
func validIssuerRules(v *web.Validation, given []issuerRuleRequest) []redisstore.IssuerRule {
	if len(given) < 1 || len(given) > maxIssuerRules {
		v.Add("rules", "must be 1 to 64")
		return nil
	}
	rules := make([]redisstore.IssuerRule, len(given))
	for i, rule := range given {
		rules[i] = redisstore.IssuerRule{Agent: v.ID(ruleField(i, "agent_id"), rule.Agent), Claims: rule.Claims.Value}
		checkRuleClaims(v, ruleField(i, "claims"), rule.Claims)
	}
	text, err := redisstore.RulesText(rules)
	v.Require(err == nil && len(text) <= redisstore.MostIssuerRules, "rules", "must have at most 32 KiB together, written as JSON")
	return rules
}

// checkRuleClaims validates the claims of a rule. One that every token of the issuer has does not tell its workloads apart.
func checkRuleClaims(v *web.Validation, field string, claims web.Optional[map[string]string]) {
	if !claims.Given {
		v.Add(field, "is required")
		return
	}
	v.Require(len(claims.Value) >= 1 && len(claims.Value) <= maxRuleClaims, field, "must be 1 to 16")
	names := slices.Sorted(maps.Keys(claims.Value))
	v.Require(slices.ContainsFunc(names, func(name string) bool { return token.TellsApart(name, claims.Value[name]) }), field,
		"must have a claim that tells workloads apart, such as sub; all tokens have iss, aud, exp, iat, nbf and jti, and repo:*, "+
			"system:serviceaccount:*, project_path:* and spiffe://example.org/* are all subjects of their platform")
	for _, name := range names {
		at := field + "." + web.Shown(name)
		v.Require(name != "" && len(name) <= token.MaxClaimName, at, "must have a name of 1 to 100 bytes")
		if err := token.CheckClaimPattern(claims.Value[name]); err != nil {
			v.Add(at, err.Error())
		}
	}
}

func ruleField(i int, name string) string { return "rules[" + strconv.Itoa(i) + "]." + name }
