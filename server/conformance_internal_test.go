package server

import (
	"cmp"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/openapi"
	"remit/redisstore"
	"remit/server/budgets"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
	"remit/test/conformance"
	"remit/test/prover"
)

// HoldToDescription holds every answer of a server to openapi.json. It must be called before
// Serve.
func HoldToDescription(t testing.TB, s *Server) {
	t.Helper()
	suite := must(conformance.Shared())(t)
	hold := func(ctx *fasthttp.RequestCtx, method, target string) {
		if err := suite.Check(exchangeOf(ctx, method, target)); err != nil {
			t.Error(err)
		}
	}
	handle, handleUnreadable, handleExpectation := s.front.HTTP.Handler, s.front.HTTP.ErrorHandler, s.front.HTTP.ExpectHandler
	s.front.HTTP.Handler = func(ctx *fasthttp.RequestCtx) {
		handle(ctx)
		hold(ctx, string(ctx.Method()), targetOf(ctx))
	}
	watch := s.metricsHTTP.Handler
	s.metricsHTTP.Handler = func(ctx *fasthttp.RequestCtx) {
		watch(ctx)
		switch target := targetOf(ctx); target {
		case "/metrics", "/healthz": // it has none of the other paths
			hold(ctx, string(ctx.Method()), target)
		}
	}
	s.front.HTTP.ExpectHandler = func(ctx *fasthttp.RequestCtx) int {
		status := handleExpectation(ctx)
		if status != fasthttp.StatusContinue {
			hold(ctx, string(ctx.Method()), targetOf(ctx))
		}
		return status
	}
	s.front.HTTP.ErrorHandler = func(ctx *fasthttp.RequestCtx, err error) {
		handleUnreadable(ctx, err)
		hold(ctx, "", "")
	}
}

// targetOf returns the path as it was sent, with the query.
func targetOf(ctx *fasthttp.RequestCtx) string {
	target := string(ctx.URI().PathOriginal())
	if query := ctx.URI().QueryString(); len(query) > 0 {
		target += "?" + string(query)
	}
	return target
}

func exchangeOf(ctx *fasthttp.RequestCtx, method, target string) *conformance.Exchange {
	e := &conformance.Exchange{
		Method: method, Target: target, Request: http.Header{}, Answer: http.Header{}, Status: ctx.Response.StatusCode(),
		Streamed: ctx.Response.IsBodyStream(),
	}
	if method != "" {
		if !ctx.Request.IsBodyStream() {
			e.Sent = ctx.Request.Body()
		}
		for name, value := range ctx.Request.Header.All() {
			e.Request.Add(string(name), string(value))
		}
	}
	for name, value := range ctx.Response.Header.All() {
		if string(name) != fasthttp.HeaderContentType || len(value) > 0 {
			e.Answer.Add(string(name), string(value))
		}
	}
	if !e.Streamed {
		e.Received = ctx.Response.Body()
	}
	return e
}

// The description and the router must know the same of each other: every route stands in both, with its role.
func TestTheDescriptionHasEveryRouteWithItsRoleAndNoOther(t *testing.T) {
	t.Parallel()
	described := map[string]string{}
	for _, o := range Operations() {
		for _, name := range o.Names() {
			described[name] = o.Role
		}
		if o.ByKey != (o.Role != "none") {
			t.Errorf("openapi.json has x-role %q at %s, whose security allows another thing", o.Role, o.ID)
		}
	}
	registered := New(Config{}).routes().Operations
	registered = append(registered, web.Operation{Method: "*", Path: web.AuthorizePath, Role: web.NoKey}) // which the router does not know
	for _, o := range registered {
		name := o.Method + " " + strings.ReplaceAll(o.Path, ":*}", "}")
		wantEqual(t, "x-role of "+name+" in openapi.json", described[name], cmp.Or(string(o.Role), "none"))
		delete(described, name)
	}
	for name := range described {
		t.Errorf("openapi.json has %s, which is not registered", name)
	}
}

func TestEveryCodeIsInTheDescription(t *testing.T) {
	t.Parallel()
	described := must(conformance.Shared())(t).Codes()
	for code, status := range everyCode() {
		if !described[code] {
			t.Errorf("openapi.json has no example of %s, %d", code, status)
		}
		delete(described, code)
	}
	for code := range described {
		if !isOAuthCode[code] {
			t.Errorf("openapi.json has an example of %s, which no error has", code)
		}
	}
}

// What an example says must be what the code says of an error that the operations with this response can meet.
func TestTheExamplesOfErrorsAreWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	notActive := func(status redisstore.Status) error { return &redisstore.NotActiveError{Status: status} }
	limit := &redisstore.LimitError{Limit: "max_value_usd"}
	role := &redisstore.RoleError{Required: redisstore.Operator}
	scope, notPending := &web.ScopeError{Scope: "payments:write"}, &redisstore.NotPendingError{Status: redisstore.RolledBack}
	quota, suspended := &redisstore.QuotaError{Quota: "agents"}, redisstore.ErrOrganizationSuspended
	agentSuspended, sessionSuspended := &redisstore.AgentSuspendedError{}, &redisstore.SessionSuspendedError{}
	agentLimit := &redisstore.AgentLimitError{Limit: redisstore.LimitValuePerDay}
	tooFast := &redisstore.AgentLimitError{Limit: redisstore.LimitActionsPerMinute, RetryAfter: time.Second}
	proxy := (&access.Guard{Front: web.NewFront(web.Config{Hooks: web.Hooks{ProblemOf: problemOf}})}).AtSubrequest
	proofs := func(status int) []error {
		use := token.ProofUse{Method: "GET", Now: time.Unix(0, 0)}
		key := prover.New("EdDSA")
		_, otherURL := new(token.Keyring).VerifyProof(key.Prove(prover.Proof{Method: "GET"}), use, nil)
		return []error{access.AsProofError(status, otherURL), &access.ProofError{Status: status, Cause: token.ErrNonce}}
	}
	said := map[string][]error{
		"Invalid":             {web.Invalid("name", "is required")},
		"InvalidSession":      {web.Invalid("agent_id", "is required")},
		"NoApiKey":            {access.ErrMissingKey, access.ErrInvalidKey},
		"NoAccessToken":       append(proofs(401), access.ErrMissingToken, access.ErrInvalidToken),
		"NoCredential":        append(proofs(401), access.ErrMissingEither, access.ErrInvalidKey, access.ErrInvalidToken),
		"NoSessionCreator":    append(proofs(401), access.ErrMissingKey, access.ErrInvalidKey, access.ErrInvalidToken),
		"NoBootstrapToken":    {access.ErrNoBootstrap, access.ErrWrongBootstrap},
		"WrongSecret":         {redisstore.ErrInvalidCredentials, redisstore.ErrProofRequired},
		"WrongRefreshToken":   {redisstore.ErrInvalidRefreshToken, redisstore.ErrProofRequired},
		"NoTokenToRevoke":     append(proofs(401), access.ErrMissingToken, access.ErrInvalidToken, redisstore.ErrInvalidRefreshToken),
		"OrganizationsClosed": {access.ErrNoNewOrgs},
		"Suspended":           {suspended},
		"ForeignToken":        {access.ErrForeignToken, suspended, access.ErrDelegatedToken, access.ErrSessionKeyOnly, agentSuspended, sessionSuspended},
		"CallerRefused":       {role, access.ErrSessionKeyOnly, agentSuspended, sessionSuspended, suspended},
		"TokenRefused":        {redisstore.ErrHeldByGateway, access.ErrDelegatedToken, agentSuspended, sessionSuspended, suspended},
		"TrailRefused":        {role, access.ErrDelegatedToken, access.ErrSessionKeyOnly, agentSuspended, sessionSuspended, suspended},
		"SuccessorUsed":       {role, redisstore.ErrSuccessorUsed, suspended},
		"ChargeRefused":       {role, limit, agentLimit, notActive(redisstore.Completed), scope, quota, suspended, agentSuspended, sessionSuspended},
		"BeginRefused":        {role, limit, agentLimit, notActive(redisstore.Completed), quota, suspended, agentSuspended, sessionSuspended, access.ErrDelegatedToken},
		"HoldRefused": {role, limit, agentLimit, notActive(redisstore.Completed), quota, suspended, agentSuspended, sessionSuspended, access.ErrDelegatedToken,
			redisstore.ErrHeldByGateway},
		"KeyRefused":           {role, suspended},
		"QuotaExceeded":        {role, quota, suspended},
		"ApiKeyNotCreated":     {role, &redisstore.QuotaError{Quota: "api_keys"}, redisstore.ErrSuccessorUsed, suspended},
		"BatchRefused":         {role, quota, agentSuspended, sessionSuspended, suspended},
		"LastAdminKey":         {redisstore.ErrLastAdminKey},
		"SessionKeyRefused":    {role, &redisstore.QuotaError{Quota: "bytes"}, suspended},
		"SessionKeyNotCreated": {budgets.AsConflict(notActive(redisstore.Completed)), redisstore.ErrManySessionKeys, redisstore.ErrUnboundSessionKey},
		"IssuerExists":         {redisstore.ErrIssuerExists},
		"SessionRefused": {role, access.ErrSessionKeyOnly, &redisstore.ParentError{LimitError: limit}, notActive(redisstore.Completed),
			&redisstore.ScopeError{Scope: "payments:write"}, &redisstore.BudgetError{}, &redisstore.QuotaError{Quota: "open_sessions"}, suspended,
			&redisstore.AgentLimitError{Limit: redisstore.LimitOpenSessions}},
		"TopUpRefused": {role, &redisstore.ParentError{LimitError: limit}, notActive(redisstore.Completed), &redisstore.BudgetError{},
			&redisstore.QuotaError{Quota: "open_sessions"}, suspended},
		"BudgetBelowUsage": {&redisstore.BudgetBelowUsageError{}},
		"AgentRefused":     {quota, suspended, agentSuspended},
		"RefreshRefused":   {suspended, agentSuspended},
		"TooMuchCreated":   {&redisstore.RateError{}},
		"ScopeMissing":     {role, redisstore.ErrHeldByGateway, &web.ScopeError{Scope: budgets.ScopeRollback}, suspended, agentSuspended, sessionSuspended},
		"VerifyRefused":    {suspended, access.ErrSessionKeyOnly, agentSuspended, sessionSuspended, proxy(scope), proxy(web.Invalid("scope", "must be one scope")), proxy(redisstore.ErrManyProofs)},
		"AuthorizeRefused": {suspended, proxy(agentLimit), proxy(tooFast), proxy(agentSuspended), proxy(sessionSuspended), proxy(limit), proxy(notActive(redisstore.Completed)), proxy(scope),
			proxy(redisstore.ErrUnknownSession), proxy(web.Invalid("value_usd", "must be from 0 to 1000000000"))},
		"NotFound":         {redisstore.ErrUnknownSession},
		"RequestTimeout":   {web.ErrSlowRequest},
		"AgentRevoked":     {redisstore.ErrAgentRevoked},
		"SessionNotActive": {budgets.AsConflict(notActive(redisstore.Expired))}, // completed is no refusal: it is ended again
		"LimitsRefused":    {&redisstore.BelowUsageError{Limit: "max_value_usd"}, budgets.AsConflict(notActive(redisstore.Completed))},
		"NotPending":       {notPending},
		"NotReversible":    {notPending, redisstore.ErrNotReversible},
		"BodyTooLarge":     {web.ErrBodyTooLarge},
		"MediaType":        {web.ErrMediaType},
		"InvalidGrant": append(proofs(400),
			web.Invalid("resource", "must be an absolute URI"), &redisstore.AudienceError{Audience: "https://mail.example.com/mcp"}),
		"ExpectationFailed": {web.ErrExpectation},
		"KeyReused":         {redisstore.ErrIdempotencyKeyReused},
		"RateLimited":       {web.ErrRateLimited},
		"TooManyProofs":     {redisstore.ErrManyProofs},
		"TooManyWaiting":    {conn.ErrOwnWaiting, conn.ErrAddressWaiting},
		"LeaseSettled":      {redisstore.ErrLeaseSettled},
		"DecisionRefused":   {redisstore.ErrRequestDecided, budgets.AsConflict(&redisstore.NotActiveError{Status: redisstore.Completed})},
		"HeadersTooLarge":   {web.ErrHeadersTooLarge},
		"InternalError":     {web.ErrPanic},
		"Unavailable":       {redisstore.ErrUnavailable, redisstore.ErrOutcomeUnknown},
		"EventsUnavailable": {conn.ErrManyWaiting},
		"OAuthInvalid":      {web.ErrUnreadable}, "OAuthInvalidToken": {web.ErrUnreadable}, "OAuthNoUsers": {web.ErrUnreadable},
		"OAuthInternalError": {web.ErrPanic},
	}
	var file struct {
		Components struct {
			Responses map[string]struct {
				Content map[string]struct {
					Examples map[string]struct{ Value shownProblem }
				}
			}
		}
	}
	must(0, json.Unmarshal(openapi.JSON().Body, &file))(t)
	for name, response := range file.Components.Responses {
		if name == "NotReady" { // its detail is the store's
			continue
		}
		for code, example := range response.Content["application/problem+json"].Examples {
			shown := example.Value
			if !slices.ContainsFunc(said[name], func(err error) bool { return says(problemOf(err), shown) }) {
				t.Errorf("%s shows for %s what is not said: %d %q", name, code, shown.Status, shown.Detail)
			}
		}
	}
}

// shownProblem is an example, without its id and usage.
type shownProblem struct {
	Type, Title   string
	Status        int
	Detail, Code  string
	Limit         string
	Session       redisstore.Status `json:"session_status"`
	Transaction   redisstore.Status `json:"transaction_status"`
	RequiredScope string            `json:"required_scope"`
	RequiredRole  redisstore.Role   `json:"required_role"`
	Errors        []web.FieldError
}

func says(p web.Problem, shown shownProblem) bool {
	return reflect.DeepEqual(shown, shownProblem{
		p.Type, p.Title, p.Status, p.Detail, p.Code, p.Limit, p.SessionStatus, p.TransactionStatus, p.RequiredScope, p.RequiredRole, p.Errors,
	})
}

// isOAuthCode holds what RFC 6749 names; the description has an example of each that is used.
var isOAuthCode = map[string]bool{
	"invalid_request": true, "invalid_client": true, "invalid_grant": true, "invalid_scope": true,
	"unauthorized_client": true, "unsupported_grant_type": true, "unsupported_response_type": true, "temporarily_unavailable": true, "server_error": true,
}
