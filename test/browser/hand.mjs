// Two ways to use a page: a mouse, and a keyboard alone. Both find things by role and name.
import assert from "node:assert/strict";

// mouse clicks and types.
export const mouse = (page) => ({
  press: (locator) => locator.click(),
  fill: (locator, text) => locator.fill(text),
  choose: (locator, value) => locator.selectOption(value),
});

// keyboard reaches everything with Tab, sees where it is, and presses Enter.
export const keyboard = (page) => ({
  reach: (locator) => tabTo(page, locator),
  press: async (locator) => {
    await tabTo(page, locator);
    await page.keyboard.press("Enter");
  },
  fill: async (locator, text) => {
    await tabTo(page, locator);
    await page.keyboard.press("Control+A");
    await page.keyboard.type(text);
  },
  choose: async (locator, value) => {
    await tabTo(page, locator);
    const label = await locator.locator(`option[value="${value}"]`).innerText();
    await page.keyboard.type(label);
  },
});

const mostTabs = 200; // more than any page has to press

async function tabTo(page, locator) {
  await locator.waitFor();
  const isThere = () => locator.evaluate((element) => element === document.activeElement);
  for (let tabs = 0; !(await isThere()); tabs++) {
    assert.ok(tabs < mostTabs, `${mostTabs} times Tab do not reach ${locator}`);
    await page.keyboard.press("Tab");
  }
  assert.ok(await locator.evaluate(showsFocus), `nobody sees that ${locator} has the focus`);
}

// showsFocus reports whether an element that has the focus has an outline, a shadow, or another border or ground than without.
function showsFocus(element) {
  const look = () => {
    const style = getComputedStyle(element);
    return [style.outlineStyle === "none" || style.outlineWidth === "0px" ? "none" : style.outline, style.boxShadow, style.borderColor, style.backgroundColor].join();
  };
  const focused = look();
  element.blur();
  const blurred = look();
  element.focus({ focusVisible: true });
  return focused !== blurred;
}
