package web

import (
	"context"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

// faint lists the texts whose contrast with what is behind them is below WCAG
// 2.2 AA: 4.5 to 1, or 3 to 1 for large ones. The browser itself reads the
// colours, so that any way of writing them will do. Behind a text of a drawing
// is the last shape that covers its middle.
const faint = `(() => {
	const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const read = colour => {
		canvas.clearRect(0, 0, 1, 1);
		canvas.fillStyle = colour;
		canvas.fillRect(0, 0, 1, 1);
		const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
		return [r, g, b, a / 255];
	};
	const over = (above, below) => {
		const a = above[3];
		return [0, 1, 2].map(i => above[i] * a + below[i] * (1 - a)).concat(1);
	};
	const luminance = colour => {
		const [r, g, b] = colour.slice(0, 3).map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
		return .2126 * r + .7152 * g + .0722 * b;
	};
	const behind = e => {
		const layers = [];
		for (let at = e; at; at = at.parentElement) layers.unshift(read(getComputedStyle(at).backgroundColor));
		let colour = layers.reduce((below, above) => over(above, below), [255, 255, 255, 1]);
		const svg = e.closest('svg');
		if (!svg) return colour;
		const box = e.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
		for (const shape of svg.querySelectorAll('rect')) {
			const r = shape.getBoundingClientRect(), style = getComputedStyle(shape);
			if (style.fill === 'none' || x < r.left || x > r.right || y < r.top || y > r.bottom) continue;
			const fill = read(style.fill);
			fill[3] *= style.fillOpacity * style.opacity;
			colour = over(fill, colour);
		}
		return colour;
	};
	const opacity = e => {
		let all = 1;
		for (let at = e; at; at = at.parentElement) all *= getComputedStyle(at).opacity;
		return all;
	};
	const found = new Map();
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let node; node = texts.nextNode();) {
		const e = node.parentElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
		if (!node.data.trim() || box.width < 2 || box.height < 2 || style.visibility !== 'visible' || e.closest('title, .sr, [aria-hidden=true]')) continue;
		const ink = read(e.closest('svg') ? style.fill : style.color);
		ink[3] *= opacity(e);
		const ground = behind(e), shown = luminance(over(ink, ground)), under = luminance(ground);
		const contrast = (Math.max(shown, under) + .05) / (Math.min(shown, under) + .05);
		const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
		if (contrast < (large ? 3 : 4.5)) {
			found.set(e.tagName.toLowerCase() + '.' + (e.getAttribute('class') || ''), contrast.toFixed(2) + ' to 1: ' + node.data.trim().slice(0, 40));
		}
	}
	return [...found].map(([where, what]) => where + ' has ' + what);
})()`

// readable fails when a text of the page is too faint for its ground.
func (b *tab) readable(name string) {
	b.t.Helper()
	for _, text := range value[[]string](b, faint) {
		b.t.Errorf("%s: %s", name, text)
	}
}

// tiny lists the texts of drawings that a screen shows smaller than 9 pixels
// from line to line, which is what 8 pixels of letters take.
const tiny = `[...document.querySelectorAll('svg text')].filter(e => {
	const box = e.getBoundingClientRect();
	return box.width > 0 && e.textContent.trim() && box.height < 9;
}).map(e => e.textContent + ' is ' + e.getBoundingClientRect().height.toFixed(1) + ' pixels high')`

// legible fails when a text of a drawing is shown too small.
func (b *tab) legible(name string) {
	b.t.Helper()
	for _, text := range value[[]string](b, tiny) {
		b.t.Errorf("%s: %s", name, text)
	}
}

// rareInBrowser opens what is seldom seen: a new installation, and actions that
// nobody can verify.
func rareInBrowser(t *testing.T, browser context.Context) {
	f := newFixtureWith(t, Config{Store: "sqlite:countersign.db", PublicURL: "http://localhost:8383"})
	b := newTab(t, browser, f)
	troubles := watch(b)
	b.signIn(f.secrets[ledger.RoleViewer])
	see := func(name, path, shows string, high int64) {
		t.Helper()
		for _, scheme := range []string{"dark", "light"} {
			b.size(1280, 860)
			b.scheme(scheme)
			b.open(path)
			wantIn(t, name, b.reads("main"), shows)
			b.fits(name, 1280)
			b.readable(name + ", " + scheme)
		}
		b.picture(name, 1280, high)
		b.size(390, 844)
		b.fits(name, 390)
	}
	see("empty", "/", "Nothing recorded yet", 900)
	if got := value[int](b, `[...document.querySelectorAll('pre, code')].filter(e => e.innerText.includes('countersign contracts publish')).length`); got == 0 {
		t.Error("a new installation shows no command to copy")
	}
	if faint := value[[]string](b, `document.querySelector('h1').style.color = '#bbb', `+faint); len(faint) != 1 {
		t.Errorf("a heading of light grey on white: %q", faint)
	}
	f.showcase(40)
	f.record(acme, refund("act_parked_1", "order_1", f.now()-60, "1"), refund("act_parked_2", "order_2", f.now()-50, "1"))
	f.park("act_parked_1", "evaluators disagree: effect_observed:stripe.refund_created is true in SQL and false in Go")
	f.park("act_parked_2", "the contract refund_workflow, version 1, cannot be read by this program")
	b.signIn(f.secrets[ledger.RoleViewer]) // hours have passed
	see("parked", "/parked", "act_parked_1", 620)
	for _, path := range []string{"/", "/actions", actionOf("act_demo_refund_001"), "/contracts", "/contracts/refund_workflow", "/sources", "/orphans"} {
		b.open(path)
		banner := value[bool](b, `(box => box && box.width > 300 && box.top >= 0 && box.bottom < innerHeight)(document.querySelector('.banner[role=alert]')?.getBoundingClientRect())`)
		if !banner {
			t.Errorf("%s does not show at once that something is parked", path)
		}
		b.readable(path + " with the banner")
	}
	b.click(".banner a")
	b.until(`location.pathname === '/parked'`)
	for _, trouble := range troubles() {
		t.Error(trouble)
	}
}
