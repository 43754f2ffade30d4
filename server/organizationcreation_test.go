package server

import (
	"testing"

	"remit/server/identity"
)

const bootstrapToken = "a-bootstrap-token-of-some-length"

func TestWhoMayCreateOrganizations(t *testing.T) {
	t.Parallel()
	guarded := identity.Organizations{Creation: identity.OrganizationsToken, BootstrapToken: bootstrapToken}
	const wrong = `Bearer realm="remit", error="invalid_token", error_description="the bootstrap token is not valid"`
	for name, test := range map[string]struct {
		organizations identity.Organizations
		authorization string
		status        int
		code          string
		challenge     string
	}{
		"everybody, if nothing is said":       {identity.Organizations{}, "", 201, "", ""},
		"everybody":                           {identity.Organizations{Creation: identity.OrganizationsOpen}, "", 201, "", ""},
		"the holder of the token":             {guarded, "Bearer " + bootstrapToken, 201, "", ""},
		"in any case of the scheme":           {guarded, "bearer " + bootstrapToken, 201, "", ""},
		"a stranger without the token":        {guarded, "", 401, "missing_credentials", `Bearer realm="remit"`},
		"a stranger with an empty token":      {guarded, "Bearer ", 401, "missing_credentials", `Bearer realm="remit"`},
		"a stranger by another scheme":        {guarded, "Basic " + bootstrapToken, 401, "missing_credentials", `Bearer realm="remit"`},
		"a stranger with a wrong token":       {guarded, "Bearer " + bootstrapToken + "x", 401, "invalid_token", wrong},
		"a stranger with a part of the token": {guarded, "Bearer " + bootstrapToken[:16], 401, "invalid_token", wrong},
		"no token, when none is set":          {identity.Organizations{Creation: identity.OrganizationsToken}, "Bearer ", 401, "missing_credentials", `Bearer realm="remit"`},
		"a token, when none is set":           {identity.Organizations{Creation: identity.OrganizationsToken}, "Bearer " + bootstrapToken, 503, "unavailable", ""},
		"closed":                              {identity.Organizations{Creation: identity.OrganizationsClosed}, "", 403, "organizations_closed", ""},
		"closed, with a token":                {identity.Organizations{Creation: identity.OrganizationsClosed, BootstrapToken: bootstrapToken}, "Bearer " + bootstrapToken, 403, "organizations_closed", ""},
		"a misspelt setting":                  {identity.Organizations{Creation: "opne"}, "", 403, "organizations_closed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runServer(t, "", Config{Organizations: test.organizations})
			var headers []string
			if test.authorization != "" {
				headers = []string{"Authorization", test.authorization}
			}
			got := s.post(t, from(t, ""), "/v1/organizations", `{"name":"acme"}`, headers...).is(t, test.status, test.code)
			wantEqual(t, "WWW-Authenticate", got.header.Get("WWW-Authenticate"), test.challenge)
		})
	}
}

func TestGuessingTheBootstrapTokenIsLimitedLikeGuessingSecrets(t *testing.T) {
	t.Parallel()
	s := runServer(t, "", Config{
		Limits:        Limits{FailedAuthPerMinute: 2},
		Organizations: identity.Organizations{Creation: identity.OrganizationsToken, BootstrapToken: bootstrapToken},
	})
	client := from(t, "")
	create := func(headers ...string) reply {
		return s.post(t, client, "/v1/organizations", `{"name":"acme"}`, headers...)
	}
	right := []string{"Authorization", "Bearer " + bootstrapToken}
	wrong := []string{"Authorization", "Bearer a-bootstrap-token-that-is-wrong"}
	create(right...).is(t, 201, "").remaining(t, "organizations")
	create().is(t, 401, "missing_credentials")
	for left := 1; left >= 0; left-- {
		wantEqual(t, "guesses left", create(wrong...).is(t, 401, "invalid_token").remaining(t, "failed-auth"), left)
	}
	create(right...).is(t, 429, "rate_limited").remaining(t, "failed-auth")
	s.exchange(t, client, "01a1fd30-7159-7864-bfd3-2670b8006c57", "rms_x").is(t, 401, "invalid_credentials")
}
