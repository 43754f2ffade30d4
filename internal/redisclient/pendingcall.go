package redisclient

import (
	"sync"
	"time"
)

// pendingCall is a command that waits for a pipeline, or one call that waits for a semaphore.
type pendingCall struct {
	cmd      unretriedCmd // its error is read after done
	call     *Command     // by which it may share a command with others; nil for none
	flow     Flow
	before   *pendingCall // in its list
	behind   *pendingCall
	deadline time.Time
	traced   *tracedCall   // nil if the request is not traced
	done     chan struct{} // takes one value; the pendingCall is used again
}

var pendingCalls = sync.Pool{New: func() any { return &pendingCall{done: make(chan struct{}, 1)} }}

// release hands it back for another call, which must be the last use of it.
func (p *pendingCall) release() {
	p.cmd, p.call, p.traced = unretriedCmd{}, nil, nil
	pendingCalls.Put(p)
}

// refuse ends the waiting of a call that was not sent.
func (p *pendingCall) refuse(why error) {
	p.cmd.SetErr(why)
	p.done <- struct{}{}
}

// callList is pending calls in order of arrival. Each is in one list at the most.
type callList struct {
	first, last *pendingCall
	length      int
}

func (l *callList) add(p *pendingCall) {
	if l.last == nil {
		l.first = p
	} else {
		l.last.behind, p.before = p, l.last
	}
	l.last = p
	l.length++
}

// takeFirst returns the call that has waited longest; the list must not be empty.
func (l *callList) takeFirst() *pendingCall { return l.drop(l.first) }

// takeLast returns the call that arrived last; the list must not be empty.
func (l *callList) takeLast() *pendingCall { return l.drop(l.last) }

func (l *callList) drop(p *pendingCall) *pendingCall {
	if p.before == nil {
		l.first = p.behind
	} else {
		p.before.behind = p.behind
	}
	if p.behind == nil {
		l.last = p.before
	} else {
		p.behind.before = p.before
	}
	p.before, p.behind = nil, nil
	l.length--
	return p
}

// remove removes a call from any place in the list, and returns false when it is not in this list.
func (l *callList) remove(p *pendingCall) bool {
	for at := l.first; at != nil; at = at.behind {
		if at == p {
			l.drop(p)
			return true
		}
	}
	return false
}
