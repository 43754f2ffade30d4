package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// duration is a flag: a Go duration such as 90s or 1h30m, with optional days before it: 30d, 1d12h.
type duration time.Duration

var errNotDuration = errors.New("must be a duration such as 90s, 2h, 30d or 1d12h")

const maxDays = 100_000 // more overflow a time.Duration

// UnmarshalText is called by the flag parser.
func (d *duration) UnmarshalText(text []byte) error {
	days, rest, found := strings.Cut(string(text), "d")
	if !found {
		days, rest = "0", string(text)
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > maxDays {
		return errNotDuration
	}
	var part time.Duration
	if rest != "" || !found {
		if part, err = time.ParseDuration(rest); err != nil {
			return errNotDuration
		}
	}
	if part < 0 && found {
		return errNotDuration
	}
	*d = duration(time.Duration(n)*24*time.Hour + part)
	return nil
}

// grace is how long a rotated credential stays valid. It defaults to more than 0 because a lost response would otherwise
// leave no usable credential.
type grace struct {
	Grace duration `default:"1m" env:"-" placeholder:"DURATION" help:"How long the current one stays valid, up to 7d. Use 0s if it has leaked. The default is 1m."`
}
