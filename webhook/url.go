package webhook

import (
	"errors"
	"net/url"
	"strconv"
)

// MaxURL is the length of the longest URL of a webhook, in bytes.
const MaxURL = 2048

// CheckURL returns why a text cannot be the URL of a webhook, in words that follow "url"; nil if it can. http is allowed only with
// allowPlain. It resolves nothing: whether the host is public shows when a request connects.
func CheckURL(text string, allowPlain bool) error {
	if len(text) > MaxURL {
		return errors.New("must have at most " + strconv.Itoa(MaxURL) + " bytes")
	}
	parsed, err := url.Parse(text)
	switch {
	case err != nil || parsed.Hostname() == "" || parsed.Opaque != "":
		return errors.New("must be an absolute URL with a host")
	case parsed.Scheme != "https" && parsed.Scheme != "http":
		return errors.New("must be an https URL")
	case parsed.Scheme == "http" && !allowPlain:
		return errors.New("must be an https URL: plain http needs --webhook-allow-private")
	case parsed.User != nil:
		return errors.New("must not contain credentials")
	case parsed.Fragment != "":
		return errors.New("must not have a fragment")
	case !validPort(parsed):
		return errors.New("must have a port from 1 to 65535")
	}
	return nil
}

func validPort(parsed *url.URL) bool {
	if parsed.Port() == "" {
		return true
	}
	port, err := strconv.ParseUint(parsed.Port(), 10, 16)
	return err == nil && port > 0
}
