package access

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// The token exchange grant (RFC 8693): an agent gets a token with which it acts for the agent of a child session, in that session.

const (
	grantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeAccessToken    = "urn:ietf:params:oauth:token-type:access_token" // RFC 8693 §3
)

// delegatedGrant is a response of the token endpoint (RFC 8693 §2.2.1). There is no refresh token: the token is asked for again.
type delegatedGrant struct {
	AccessToken string `json:"access_token"`
	IssuedType  string `json:"issued_token_type"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int64  `json:"expires_in"` // seconds
	Scope       string `json:"scope"`
}

// Delegation is a request for a delegated token.
type Delegation struct {
	subject *CachedToken
	held    []string // the scopes that the subject has left
	session uuid.UUID
	keys    *token.Keyring          // that sign
	asked   redisstore.GrantRequest // with the proof of the key that the new token is bound to
}

// delegate serves this grant. The subject token authenticates the request, so a client need not.
func (g *Guard) delegate(ctx *fasthttp.RequestCtx, form url.Values) error {
	d, err := g.readDelegation(ctx, form)
	if err != nil {
		return err
	}
	client, err := g.optionalClient(ctx, form)
	if err != nil {
		return err
	}
	if err := g.authorizeDelegation(ctx, d, client); err != nil {
		return err
	}
	granted, err := g.Store.Delegate(web.RequestContext(ctx), redisstore.NewDelegation{
		Subject: *d.subject.Caller.Token, Session: d.session, Scopes: d.asked.Scopes, Held: d.held,
		Audience: d.asked.Audience, Actors: d.actingAgents(), Proof: d.asked.Proof,
	})
	if err != nil {
		return g.RefusedDelegation(d, err)
	}
	return g.answerDelegation(ctx, d, granted)
}

// readDelegation reads the request, its subject token, and the proof of the key that the new token is to be bound to.
func (g *Guard) readDelegation(ctx *fasthttp.RequestCtx, form url.Values) (*Delegation, error) {
	session, err := delegationParameters(form)
	if err != nil {
		return nil, err
	}
	keys, err := g.Keys()
	if err != nil {
		return nil, err
	}
	d := &Delegation{session: session, keys: keys}
	if d.asked, err = readGrantRequest(form, keys.Issuer()); err != nil {
		return nil, err
	}
	if err := g.readSubject(form.Get("subject_token"), d); err != nil {
		return nil, err
	}
	d.asked.Proof, err = g.grantProof(ctx)
	return d, err
}

// authorizeDelegation checks that the subject token may be exchanged so, by this client (uuid.Nil for none), and uses its proof up.
func (g *Guard) authorizeDelegation(ctx *fasthttp.RequestCtx, d *Delegation, client uuid.UUID) error {
	if err := g.checkSubject(ctx, d); err != nil {
		return err
	}
	if err := d.checkAudience(); err != nil {
		return err
	}
	if client != uuid.Nil && client != cmp.Or(d.subject.Client, d.subject.Agent) {
		return redisstore.ErrInvalidCredentials
	}
	web.IdentifyCaller(ctx, d.subject.Organization, d.subject.Agent)
	return g.useSubjectsProof(ctx, d)
}

// answerDelegation signs the token that was granted, and answers with it.
func (g *Guard) answerDelegation(ctx *fasthttp.RequestCtx, d *Delegation, granted redisstore.Delegation) error {
	grant := redisstore.Grant{Audience: d.asked.Audience}
	grant.Bound = d.asked.Proof != nil
	if len(grant.Audience) == 0 {
		grant.Audience = []string{redisstore.Self}
	}
	access, err := d.token(granted, audienceOf(d.keys, grant), g.Clock())
	if err != nil {
		return g.RefusedDelegation(d, err)
	}
	text, err := d.keys.SignAccess(access)
	if err != nil {
		return tooLong(err, grant)
	}
	g.Metrics.tokensByDelegation.Inc()
	return web.Answer(ctx, delegatedGrant{
		AccessToken: text, IssuedType: typeAccessToken, TokenType: tokenType(grant, "Bearer"),
		ExpiresIn: int64(access.Expires().Sub(access.Issued) / time.Second), Scope: strings.Join(access.Scopes, " "),
	})
}

// delegationParameters returns the session, and refuses what this grant does not know (RFC 8693 §2.1).
func delegationParameters(form url.Values) (uuid.UUID, error) {
	session, isID := web.ParseID(form.Get("session_id"))
	requested := form.Get("requested_token_type")
	switch {
	case form.Get("subject_token") == "":
		return uuid.Nil, &OAuthError{"invalid_request", "subject_token is required"}
	case form.Get("subject_token_type") != typeAccessToken:
		return uuid.Nil, &OAuthError{"invalid_request", "subject_token_type must be " + typeAccessToken}
	case requested != "" && requested != typeAccessToken:
		return uuid.Nil, &OAuthError{"invalid_request", "requested_token_type must be " + typeAccessToken}
	case form.Get("actor_token") != "" || form.Get("actor_token_type") != "":
		return uuid.Nil, &OAuthError{"invalid_request", "there is no actor_token: the subject token's agent acts"}
	case form.Get("session_id") == "":
		return uuid.Nil, &OAuthError{"invalid_request", "session_id is required"}
	case !isID:
		return uuid.Nil, &OAuthError{"invalid_request", "session_id must be a UUID"}
	}
	return session, nil
}

// optionalClient returns the client that the request names, and checks its credentials if it has any; uuid.Nil for no client.
func (g *Guard) optionalClient(ctx *fasthttp.RequestCtx, form url.Values) (uuid.UUID, error) {
	if len(ctx.Request.Header.Peek(fasthttp.HeaderAuthorization)) == 0 && form.Get("client_secret") == "" && !hasClientAssertion(form) {
		agent, isID := web.ParseID(form.Get("client_id"))
		if form.Get("client_id") != "" && !isID {
			return uuid.Nil, redisstore.ErrInvalidCredentials
		}
		return agent, nil
	}
	client, err := g.readClient(ctx, form)
	if err != nil {
		return uuid.Nil, g.RejectCredential(ctx, client.Agent, err)
	}
	return client.Agent, g.Authenticate(ctx, client, func() error {
		_, err := g.authenticatedClient(ctx, client, form, "subject_token")
		return err
	})
}

// readSubject verifies the subject token. Only one for this service itself may be exchanged. Strangers come no further than this: a
// proof, of which they make as many as they like, costs much more to verify.
func (g *Guard) readSubject(text string, d *Delegation) error {
	subject, err := WithFreshKeys(g, func(v *TokenCache) (*CachedToken, error) { return v.Verify([]byte(text), g.Clock()) })
	if KeysUnavailable(err) {
		return err
	}
	if err != nil || !subject.forIssuer || subject.Caller.Token.IsSessionKey() {
		return g.RefusedDelegation(d, ErrInvalidToken)
	}
	d.subject, d.held = subject, subject.Scopes
	return nil
}

// checkSubject refuses a subject token without a proof of its key, of a suspended organization, or that is delegated and not live.
func (g *Guard) checkSubject(ctx *fasthttp.RequestCtx, d *Delegation) (err error) {
	subject := d.subject
	if err := d.checkKey(subject); err != nil {
		return err
	}
	if g.Store.Suspended(subject.Organization) {
		return g.RefusedDelegation(d, redisstore.ErrOrganizationSuspended)
	}
	if subject.Caller.Delegated == nil {
		return nil
	}
	if d.held, err = g.CheckDelegated(web.ReadContext(ctx), subject.Caller); err != nil {
		return g.RefusedDelegation(d, err)
	}
	if len(subject.Actors) == token.MaxActors {
		return &OAuthError{"invalid_request", "too many agents act with the subject token one for another"}
	}
	return nil
}

// checkKey refuses a subject token that is bound to a key without a proof of that key: a thief with the token alone must not get one
// that is bound to another key, or to none.
func (d *Delegation) checkKey(subject *CachedToken) error {
	switch {
	case subject.Thumbprint == "":
		return nil
	case d.asked.Proof == nil:
		return &ProofError{400, errNoProof}
	case d.asked.Proof.Thumbprint() != subject.Thumbprint:
		return &ProofError{400, errOtherKey}
	}
	return nil
}

// checkAudience refuses an audience that the subject token does not have. What its agent, the child's agent or another token may reach
// does not matter, because a thief of this token must not reach another resource with it.
func (d *Delegation) checkAudience() error {
	for _, one := range d.asked.Audience {
		if one != redisstore.Self && !slices.Contains(d.subject.Audience, one) {
			return &redisstore.AudienceError{Audience: one}
		}
	}
	return nil
}

// useSubjectsProof uses up the proof among those of the subject token's agent.
func (g *Guard) useSubjectsProof(ctx *fasthttp.RequestCtx, d *Delegation) error {
	err := g.UseProof(ctx, d.subject, d.asked.Proof)
	if errors.Is(err, redisstore.ErrInvalidToken) {
		return g.RefusedDelegation(d, err)
	}
	return AsProofError(400, err)
}

// RefusedDelegation returns the error of RFC 8693 §2.2.2: invalid_request for a subject token that is not valid, or may not do this.
func (g *Guard) RefusedDelegation(d *Delegation, err error) error {
	var scope *redisstore.ScopeError
	var inactive *redisstore.NotActiveError
	p := g.Front.Hooks.ProblemOf(err)
	switch {
	case errors.Is(err, redisstore.ErrProofRequired):
		return err
	case errors.As(err, &scope) && slices.Contains(d.asked.Scopes, scope.Scope):
		return (&OAuthError{"invalid_scope", "the token may not have the scope " + scope.Scope}).because(err)
	case errors.As(err, &scope):
		return (&OAuthError{"invalid_request", "the subject token, its agent and its session must hold " + ScopeDelegate}).because(err)
	case errors.Is(err, redisstore.ErrUnknownSession):
		return (&OAuthError{"invalid_request", "session_id must be a child of a session that the subject token reaches"}).because(err)
	case errors.As(err, new(*redisstore.AudienceError)):
		return err
	case errors.As(err, &inactive):
		return (&OAuthError{"invalid_request", "the session or its parent is " + string(inactive.Status)}).because(err)
	case p.Status == 401:
		return &OAuthError{"invalid_request", "the subject token is not valid, has expired or was revoked"}
	case p.Status == 403 && p.Code != "quota_exceeded":
		return (&OAuthError{"invalid_request", p.Detail}).because(err)
	}
	return err
}

func (d *Delegation) actingAgents() []uuid.UUID {
	var agents []uuid.UUID
	for _, actor := range d.subject.Actors {
		agents = append(agents, actor.Agent)
	}
	return agents
}

// token returns the token to sign. It does not outlive the subject token, nor the session as it is now.
func (d *Delegation) token(granted redisstore.Delegation, audience []string, now time.Time) (token.Access, error) {
	issued := now.Truncate(time.Second)
	lifetime := min(token.AccessLifetime, d.subject.Expires().Sub(issued), granted.Rest).Truncate(time.Second)
	if lifetime < time.Second {
		return token.Access{}, &redisstore.NotActiveError{Status: redisstore.Expired}
	}
	if lifetime == token.AccessLifetime {
		lifetime = 0 // the default
	}
	return token.Access{
		Agent: granted.Agent, Organization: granted.Organization, Family: granted.Family, Scopes: granted.Scopes, Issued: issued,
		Audience: audience, Client: d.subject.Agent, Session: granted.Session, Lifetime: lifetime, Thumbprint: d.asked.Proof.Thumbprint(),
		Actors: append([]token.Actor{{Agent: d.subject.Agent, Family: d.subject.Family}}, d.subject.Actors...),
	}, nil
}
