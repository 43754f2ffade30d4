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
	host := hostOf(p.settings.URL)
	leave, turn, waited := p.waitForTurn(ctx, host)
	if leave != nil && !p.follow(ctx) {
		p.deliverer.rates.giveBack(turn, &p.loop.of.pace, host)
		leave()
		return nil, waited
	}
	return leave, waited
}

// waitForTurn waits for the rates and a place. A request that waits for its rate keeps no place from others, and one that had to wait for a
// place needs a turn of now.
func (p *pass) waitForTurn(ctx context.Context, host string) (leave func(), turn *ticket, waited bool) {
	of, own, places := &p.loop.of.pace, p.loop.of.own, p.deliverer.places
	isSlow := func() bool { return places.isSlow(p.webhook.ID) }
	if !p.deliverer.rates.admit(ctx, of) {
		return nil, nil, false
	}
	for atHost := time.Duration(0); ; leave() {
		began := p.deliverer.rates.Now()
		turn = p.deliverer.rates.turn(ctx, of, host)
		atHost += p.deliverer.rates.Now().Sub(began)
		waited = atHost >= places.soon
		if turn == nil {
			return nil, nil, waited
		}
		if place := places.lanes.Try(own, isSlow()); place != nil {
			return place.Leave, turn, waited
		}
		p.deliverer.rates.giveBack(turn, of, host)
		place := places.lanes.Enter(ctx, own, isSlow)
		if place == nil {
			return nil, nil, waited
		}
		if leave, turn = place.Leave, p.deliverer.rates.take(of, host); turn != nil {
			return leave, turn, waited
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
	settings, err := p.deliverer.Store.WebhookSettings(ctx, p.loop.organization, p.webhook.ID)
	if err != nil {
		p.loop.endIfDeleted(err) // which ends the pass, so nothing of it counts
		return false
	}
	p.settings, p.read = settings, read
	return settings.URLVersion == p.webhook.Settings.URLVersion
}
