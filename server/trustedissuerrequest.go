package server

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"remit/internal/token"
	"remit/redisstore"
)

const (
	maxIssuerDescription = 500 // characters
	maxIssuerRules       = 64
	maxRuleClaims        = 16
)

// trustedIssuerRequest creates a trusted issuer.
type trustedIssuerRequest struct {
	Issuer optional[string] `json:"issuer"`
	changeTrustedIssuerRequest
}

// changeTrustedIssuerRequest changes a trusted issuer. Its name stays: another name is another issuer.
type changeTrustedIssuerRequest struct {
	JWKSURI     optional[string]              `json:"jwks_uri"`
	JWKS        optional[jsontext.Value]      `json:"jwks"`
	Rules       optional[[]issuerRuleRequest] `json:"rules"`
	Description optional[string]              `json:"description"`
}

type issuerRuleRequest struct {
	Agent  optional[string]            `json:"agent_id"`
	Claims optional[map[string]string] `json:"claims"`
}

func (r *trustedIssuerRequest) read(allowPrivate bool) (redisstore.TrustedIssuerSettings, error) {
	var v validation
	v.require(r.Issuer.given, "issuer", "is required")
	if err := token.CheckIssuerName(r.Issuer.value); r.Issuer.given && err != nil {
		v.add("issuer", err.Error())
	}
	v.require(r.JWKSURI.given || r.JWKS.given, "jwks_uri", "is required, or jwks")
	v.require(r.Rules.given, "rules", "is required")
	settings := r.settings(&v, allowPrivate)
	settings.Issuer = r.Issuer.value
	return settings, v.err()
}

func (r *changeTrustedIssuerRequest) read(allowPrivate bool) (redisstore.TrustedIssuerSettings, error) {
	var v validation
	v.require(r.JWKSURI.given || r.JWKS.given || r.Rules.given || r.Description.given, "",
		"name at least one of jwks_uri, jwks, rules and description")
	return r.settings(&v, allowPrivate), v.err()
}

// settings returns what is given.
func (r *changeTrustedIssuerRequest) settings(v *validation, allowPrivate bool) redisstore.TrustedIssuerSettings {
	settings := redisstore.TrustedIssuerSettings{JWKSURI: r.JWKSURI.value, Description: r.Description.value}
	v.require(!r.JWKSURI.given || !r.JWKS.given, "jwks_uri", "must not be given together with jwks")
	if r.JWKSURI.given {
		validKeySetURI(v, &r.JWKSURI.value, allowPrivate)
	}
	if r.JWKS.given {
		settings.JWKS = validKeySet(v, &r.JWKS.value)
	}
	if r.Rules.given {
		settings.Rules = validIssuerRules(v, r.Rules.value)
	}
	v.require(utf8.RuneCountInString(r.Description.value) <= maxIssuerDescription, "description", "must have at most 500 characters")
	return settings
}

// apply writes what is given into the settings. Keys of one kind replace those of the other.
func (r *changeTrustedIssuerRequest) apply(settings *redisstore.TrustedIssuerSettings, given redisstore.TrustedIssuerSettings) {
	if r.JWKSURI.given || r.JWKS.given {
		settings.JWKSURI, settings.JWKS = given.JWKSURI, given.JWKS
	}
	if r.Rules.given {
		settings.Rules = given.Rules
	}
	if r.Description.given {
		settings.Description = given.Description
	}
}

// validIssuerRules reads the rules of a trusted issuer.
func validIssuerRules(v *validation, given []issuerRuleRequest) []redisstore.IssuerRule {
	if len(given) < 1 || len(given) > maxIssuerRules {
		v.add("rules", "must be 1 to 64")
		return nil
	}
	rules := make([]redisstore.IssuerRule, len(given))
	for i, rule := range given {
		rules[i] = redisstore.IssuerRule{Agent: v.id(ruleField(i, "agent_id"), rule.Agent), Claims: rule.Claims.value}
		checkRuleClaims(v, ruleField(i, "claims"), rule.Claims)
	}
	text, err := redisstore.RulesText(rules)
	v.require(err == nil && len(text) <= redisstore.MostIssuerRules, "rules", "must have at most 32 KiB together, written as JSON")
	return rules
}

// checkRuleClaims validates the claims of a rule. One that every token of the issuer has does not tell its workloads apart.
func checkRuleClaims(v *validation, field string, claims optional[map[string]string]) {
	if !claims.given {
		v.add(field, "is required")
		return
	}
	v.require(len(claims.value) >= 1 && len(claims.value) <= maxRuleClaims, field, "must be 1 to 16")
	names := slices.Sorted(maps.Keys(claims.value))
	v.require(slices.ContainsFunc(names, func(name string) bool { return token.TellsApart(name, claims.value[name]) }), field,
		"must have a claim that tells workloads apart, such as sub; all tokens have iss, aud, exp, iat, nbf and jti, and repo:*, "+
			"system:serviceaccount:*, project_path:* and spiffe://example.org/* are all subjects of their platform")
	for _, name := range names {
		at := field + "." + shown(name)
		v.require(name != "" && len(name) <= token.MaxClaimName, at, "must have a name of 1 to 100 bytes")
		if err := token.CheckClaimPattern(claims.value[name]); err != nil {
			v.add(at, err.Error())
		}
	}
}

func ruleField(i int, name string) string { return "rules[" + strconv.Itoa(i) + "]." + name }
