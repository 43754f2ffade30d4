// The page works without this script, which adds buttons that copy, and a search over the operations.
const origin = document.getElementById("prepare");
if (location.protocol.startsWith("http")) {
  origin.textContent = origin.textContent.replace("http://127.0.0.1:8080", location.origin);
}

for (const command of document.querySelectorAll("pre.curl")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command.querySelector("code").textContent + "\n");
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command.querySelector("code"));
      button.textContent = "Press Ctrl-C";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  const frame = document.createElement("div");
  frame.className = "frame";
  command.replaceWith(frame);
  frame.append(command, button);
}

const search = document.getElementById("search");
const count = document.getElementById("found");
const links = [...document.querySelectorAll("nav a")];
const operations = [...document.querySelectorAll("article[data-method]")].map((article) => ({
  article,
  link: links.find((link) => link.hash === `#${article.id}`).parentElement,
  text: article.textContent.toLowerCase(),
}));

function find() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { article, link, text } of operations) {
    const shown = words.every((word) => text.includes(word));
    article.hidden = link.hidden = !shown;
    found += shown ? 1 : 0;
  }
  for (const section of document.querySelectorAll("main > section")) {
    section.hidden = words.length > 0 && !section.querySelector("article:not([hidden])");
    links.find((link) => link.hash === `#${section.querySelector("h2").id}`).parentElement.hidden = section.hidden;
  }
  count.textContent = words.length > 0 ? `${found} of ${operations.length} operations` : "";
}

document.getElementById("finder").hidden = false;
search.value = new URLSearchParams(location.search).get("q") ?? "";
search.addEventListener("input", find);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== search && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape" && event.target === search) {
    search.value = "";
    find();
  }
});
find();
