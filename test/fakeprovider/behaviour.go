package fakeprovider

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// behaviour is what X-Fake says.
type behaviour struct {
	seed      uint64
	odd       bool
	usage     string // missing, null, empty, zero, negative, choices, or as it is
	model     string // empty: the one that was asked for
	tier      string
	failure   string // midway, first, or a status
	retry     string // seconds
	cut       bool
	hang      string // midway or first
	endless   bool
	tools     bool
	reasoning bool
	cached    bool
	forHour   bool // some of it
	pace      time.Duration
}

func readBehaviour(header string) (b behaviour, err error) {
	for pair := range strings.SplitSeq(header, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		if !b.set(key, value) {
			return b, fmt.Errorf("%q means nothing", pair)
		}
	}
	return b, nil
}

var failures = []string{"midway", "first", "400", "401", "403", "404", "429", "500", "503", "504", "529"}

func (b *behaviour) set(key, value string) bool {
	var err error
	switch {
	case key == "seed":
		b.seed, err = strconv.ParseUint(value, 10, 64)
	case key == "pace":
		var ms uint64
		ms, err = strconv.ParseUint(value, 10, 16)
		b.pace = time.Duration(ms) * time.Millisecond
	case key == "chunks" && value == "odd":
		b.odd = true
	case key == "usage" && slices.Contains([]string{"missing", "null", "empty", "zero", "negative", "choices"}, value):
		b.usage = value
	case key == "tier" && value != "":
		b.tier = value
	case key == "model" && value != "":
		b.model = value
	case key == "error" && slices.Contains(failures, value):
		b.failure = value
	case key == "retry":
		_, err = strconv.ParseUint(value, 10, 16)
		b.retry = value
	case key == "hang" && (value == "midway" || value == "first"):
		b.hang = value
	case key == "endless" && value == "1":
		b.endless = true
	case key == "cut" && value == "midway":
		b.cut = true
	case key == "tools" && value == "1":
		b.tools = true
	case key == "reasoning" && value == "1":
		b.reasoning = true
	case key == "cached" && (value == "1" || value == "hour"):
		b.cached, b.forHour = true, value == "hour"
	default:
		return false
	}
	return err == nil
}

// shown returns what an answer says as its usage, and whether it does.
func (b behaviour) shown(usage object) (shown any, says bool) {
	switch b.usage {
	case "missing":
		return nil, false
	case "null":
		return nil, true
	case "empty":
		return object{}, true
	case "zero":
		for name, count := range usage {
			if _, isCount := count.(int64); isCount {
				usage[name] = 0
			} else {
				delete(usage, name)
			}
		}
	}
	return usage, true
}

// sayTier has an answer name its service tier, if it is to.
func (b behaviour) sayTier(answer object) {
	if b.tier != "" {
		answer["service_tier"] = b.tier
	}
}

func (b behaviour) random() *rand.Rand { return rand.New(rand.NewPCG(b.seed, 0x5eed)) }

// refusal returns the status of an answer that is an error from its start; 0: it is none.
func (b behaviour) refusal(streamed bool) int {
	if (b.failure == "midway" || b.failure == "first") && !streamed {
		return http.StatusInternalServerError
	}
	status, _ := strconv.Atoi(b.failure) // 0 for what is no status
	return status
}
