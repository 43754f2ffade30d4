package webhook

import (
	"context"
	"time"
)

// settingsHold is how long after they were read settings are those of a request.
const settingsHold = 100 * time.Millisecond

// enter waits until a request may begin, and returns what is to be called when it has ended; nil if none may in this pass. It also returns
// whether the request waited for its host as long as a slow attempt takes.
func (p *pass) enter(ctx context.Context) (leave func(), waited bool) {
	leave, waited = p.waitForTurn(ctx, hostOf(p.settings.URL))
	if leave != nil && !p.follow(ctx) {
		leave()
		return nil, waited
	}
	return leave, waited
}

// waitForTurn waits for the rates and a place. A request that waits for its rate keeps no place from others, and one that had to wait for a
// place needs a turn of now.
func (p *pass) waitForTurn(ctx context.Context, host string) (leave func(), waited bool) {
	of, own, webhook := &p.of.pace, p.of.own, p.webhook.ID
	if !p.rates.admit(ctx, of) {
		return nil, false
	}
	for atHost := time.Duration(0); ; leave() {
		began := p.rates.Now()
		turn := p.rates.turn(ctx, of, host)
		atHost += p.rates.Now().Sub(began)
		waited = atHost >= p.places.soon
		if turn == nil {
			return nil, waited
		}
		if leave = p.places.try(own, webhook); leave != nil {
			return leave, waited
		}
		p.rates.giveBack(turn, of, host)
		if leave = p.places.enter(ctx, own, webhook); leave == nil || p.rates.take(of, host) {
			return leave, waited
		}
	}
}

// follow reads the settings that hold for a request which begins now: earlier ones, and waiting, may have taken long. It returns whether
// the pass goes on: another URL is that of another receiver, which has to confirm first.
func (p *pass) follow(ctx context.Context) bool {
	if time.Since(p.read) < settingsHold {
		return true
	}
	read := time.Now()
	settings, err := p.Store.WebhookSettings(ctx, p.organization, p.webhook.ID)
	if err != nil {
		p.endIfDeleted(err) // which ends the pass, so nothing of it counts
		return false
	}
	p.settings, p.read = settings, read
	return settings.URLVersion == p.webhook.Settings.URLVersion
}
