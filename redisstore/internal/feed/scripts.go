package feed

import (
	"errors"

	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var (
	enterFeed    = kernel.NewScript("records/enter_feed", redisclient.BestEffort)
	noteFeed     = kernel.NewScript("records/note_feed", redisclient.BestEffort)
	dropFeed     = kernel.NewScript("records/drop_feed", redisclient.BestEffort)
	markAgents   = kernel.NewScript("records/mark_agents", redisclient.BestEffort)
	leadFeed     = kernel.NewScript("records/lead_feed", redisclient.BestEffort)
	TakeAgents   = kernel.NewScript("records/take_agents", redisclient.BestEffort)
	FinishLook   = kernel.NewScript("records/finish_look", redisclient.BestEffort)
	appendEvents = kernel.NewScript("records/append_events", redisclient.Writes)
	trimTrail    = kernel.NewScript("records/trim_trail", redisclient.BestEffort)
)

// ErrFeedLost means that another instance leads the feed, or has led it since.
var ErrFeedLost = errors.New("another instance leads the feed")

// Refusals maps the reply codes of these scripts to their errors.
var Refusals = redisclient.Refusals{"feed_lost": func(*redisclient.Reply) error { return ErrFeedLost }}
