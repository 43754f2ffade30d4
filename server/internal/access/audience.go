package access

import (
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

const (
	maxResources      = 8   // of one access token
	maxResourcesBytes = 512 // of one access token, together
)

// TargetError refuses a resource that an access token may not be for (RFC 8707 §2). Its message follows the parameter's name.
type TargetError struct{ Message string }

func (e *TargetError) Error() string { return "resource " + e.Message }

func (e *TargetError) Problem() web.Problem {
	p := web.NewProblem(400, "invalid_target", e.Error())
	p.Errors = []web.FieldError{{Field: "resource", Message: e.Message}}
	return p
}

// ForeignTarget refuses an audience that the agent may not ask for.
func ForeignTarget(e *redisstore.AudienceError) *TargetError {
	if e.Audience == redisstore.Self {
		return &TargetError{"was not this service when the refresh token was granted"}
	}
	return &TargetError{"is not allowed for this token: " + web.Shown(e.Audience)}
}

// validAudience returns the audience that the resources name, each once, with redisstore.Self for the issuer.
func validAudience(v *web.Validation, resources []string, issuer string) []string {
	var audience []string
	total := 0
	for i, resource := range resources {
		if isIssuer(resource, issuer) {
			resource = redisstore.Self
		} else if err := CheckAudience(resource); err != nil {
			field := "resource"
			if len(resources) > 1 {
				field += "[" + strconv.Itoa(i) + "]"
			}
			v.Add(field, err.Error())
			continue
		}
		if !slices.Contains(audience, resource) {
			audience = append(audience, resource)
			total += len(resource)
		}
	}
	v.Require(len(audience) <= maxResources, "resource", "must be at most "+strconv.Itoa(maxResources))
	v.Require(total <= maxResourcesBytes, "resource", "must have at most "+strconv.Itoa(maxResourcesBytes)+" bytes together")
	return audience
}

// isIssuer reports whether a resource is this service. Clients whose URL type writes a slash behind a host name it so.
func isIssuer(resource, issuer string) bool { return strings.TrimSuffix(resource, "/") == issuer }

// audienceIn returns the audience that a form names. RFC 8693 §2.1 calls the parameter audience, and other servers do for any grant.
func audienceIn(form url.Values, issuer string) ([]string, error) {
	var v web.Validation
	named := slices.DeleteFunc(slices.Concat(form["resource"], form["audience"]), func(one string) bool { return one == "" })
	audience := validAudience(&v, named, issuer)
	if err := v.Err(); err != nil {
		return nil, &OAuthError{"invalid_target", err.Error()}
	}
	return audience, nil
}

// audienceOf returns the audience of a grant's access token.
func audienceOf(keys *token.Keyring, grant redisstore.Grant) []string {
	audience := slices.Clone(grant.Audience)
	for i, one := range audience {
		if one == redisstore.Self {
			audience[i] = keys.Issuer()
		}
	}
	return audience
}

// tooLong says what makes the access token of a grant too long, if an error is that.
func tooLong(err error, grant redisstore.Grant) error {
	if errors.Is(err, token.ErrAccessSize) && !slices.Equal(grant.Audience, []string{redisstore.Self}) {
		return &TargetError{"makes the access token too long; name fewer, shorter ones, or fewer scopes"}
	}
	return err
}

// CheckAudience returns why a text cannot be an audience, in words that follow its name: an audience is an absolute URI
// without a fragment (RFC 8707 §2), of which http is for this machine only.
func CheckAudience(text string) error {
	parsed, err := url.Parse(text)
	switch {
	case len(text) > maxAudienceSize:
		return errors.New("must have at most " + strconv.Itoa(maxAudienceSize) + " bytes")
	case err != nil || !isURIText(text) || parsed.Scheme == "" || strings.HasSuffix(text, ":"):
		return errors.New("must be an absolute URI")
	case strings.Contains(text, "#"):
		return errors.New("must not have a fragment")
	case parsed.Scheme == "https" && parsed.Hostname() == "":
		return errors.New("must have a host")
	case parsed.Scheme == "http" && !token.IsLoopbackHost(parsed.Hostname()):
		return errors.New("must be an https URI: http is for loopback hosts only")
	}
	return nil
}

const maxAudienceSize = 256 // bytes

// isURIText says whether a text has only characters that may stand in a URI (RFC 3986 §2).
func isURIText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return false
		}
	}
	return true
}
