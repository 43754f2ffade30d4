package redisstore

import "strings"

// URL is the URL of a Redis in a flag or an environment variable; see Config.URL for its forms.
type URL string

// UnmarshalText trims white space, because a secret from a file ends with a newline.
func (u *URL) UnmarshalText(text []byte) error {
	*u = URL(strings.TrimSpace(string(text)))
	return nil
}
