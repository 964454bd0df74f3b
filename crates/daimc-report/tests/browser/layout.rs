//! Legibility of the page at the widths of a phone, a laptop and a large screen, in light and dark mode, and in print.

use daimc::synthetic::Synthetic;
use daimc::{Daimc, Neighbours, Preset, View, Views, simulate};
use daimc_report::Report;

use crate::chromium::{self, Chromium};

/// Finds text that is too small, cut off or overlapping, and a page that is too wide.
const CHECK: &str = r"(() => {
  const wrong = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) wrong.push(`the page is ${root.scrollWidth} wide in a window of ${root.clientWidth}`);
  for (const svg of document.querySelectorAll('.chart > svg')) {
    if (!svg.getClientRects().length) continue;
    const frame = svg.getBoundingClientRect();
    const scale = svg.getScreenCTM().a;
    const label = svg.getAttribute('aria-label').slice(0, 60);
    const texts = [...svg.querySelectorAll('text')].filter((text) => text.getClientRects().length && text.textContent.trim());
    const boxes = texts.map((text) => {
      const words = (text.firstChild.nodeType === 3 ? text.firstChild.data : text.textContent).slice(0, 30);
      const size = parseFloat(getComputedStyle(text).fontSize) * scale;
      if (size < 9) wrong.push(`${label}: '${words}' has letters of ${size.toFixed(1)} pixels`);
      const box = text.getBoundingClientRect();
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 2 || box.bottom > frame.bottom + 2)
        wrong.push(`${label}: '${words}' is cut off`);
      return [box, words];
    });
    boxes.forEach(([a, first], i) => boxes.slice(i + 1).forEach(([b, second]) => {
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (across > 1 && down > 3 * scale) wrong.push(`${label}: '${first}' and '${second}' overlap`);
    }));
  }
  for (const node of document.querySelectorAll('main *, header *')) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (own && !node.closest('svg') && node.getClientRects().length && parseFloat(getComputedStyle(node).fontSize) < 9)
      wrong.push(`small letters: ${node.textContent.slice(0, 30)}`);
  }
  return [...new Set(wrong)].slice(0, 12);
})()";

/// A page about `clusters` clusters and `views` views with names of `letters` letters.
fn page(clusters: usize, views: usize, letters: usize) -> String {
    let n = 30 * clusters.max(8);
    let data = Synthetic::new(n, clusters).noise(0.8).seed(5);
    let present = simulate::missing(n, &vec![if views > 1 { 0.3 } else { 0.0 }; views], 2).unwrap();
    let long = |name: String| {
        name.chars().chain("x".repeat(letters).chars()).take(letters.max(name.len())).collect::<String>()
    };
    let ids: Vec<String> = (0..n).map(|i| long(format!("patient {i} "))).collect();
    let made = (0..views).zip(&present).map(|(v, present)| {
        let names = (0..12).map(|f| long(format!("gene {v}.{f} "))).collect();
        let view: View<'_> = data.dense::<f64>(&long(format!("view {v} ")), 12).unwrap();
        view.feature_names(names).unwrap().ids(ids.clone()).unwrap().mask(present).unwrap()
    });
    let views = Views::new(made.collect()).unwrap();
    let fit =
        Daimc::new(clusters).preset(Preset::Paper).neighbours(Neighbours::Off).max_iterations(40).runs(2);
    let fit = fit.fit(&views).unwrap();
    let classes: Vec<Option<String>> =
        data.truth().iter().map(|class| Some(long(format!("class {class} ")))).collect();
    let title = long("Clusters of patients ".into());
    Report::new(&views, &fit).title(title).truth(&classes).render().unwrap()
}

#[test]
fn text_is_legible_at_every_width_in_light_and_dark_mode_and_in_print() {
    let Some(program) = chromium::find() else {
        crate::skip("no Chromium (CHROMIUM, chromium, chromium-browser or google-chrome on PATH)");
        return;
    };
    let mut browser = Chromium::start(&program);
    let mut wrong = Vec::new();
    for (clusters, views, letters) in [(4, 3, 0), (1, 1, 0), (2, 20, 200), (60, 2, 0), (12, 6, 200)] {
        let file = browser.folder.join("report.html");
        std::fs::write(&file, page(clusters, views, letters)).unwrap();
        // A sheet of A4 with margins of 12 millimetres is 703 pixels wide.
        let looks =
            [("light", 390), ("dark", 390), ("light", 1280), ("dark", 1280), ("light", 1920), ("print", 703)];
        for (scheme, width) in looks {
            browser.open(&file, scheme, width);
            let found: Vec<String> = serde_json::from_value(browser.evaluate(CHECK)).unwrap();
            let case = format!("{clusters} clusters, {views} views, names of {letters}, {scheme}, {width}");
            let found = found.into_iter().chain(browser.errors());
            wrong.extend(found.map(|message| format!("{case}: {message}")));
            let requested = browser.requested();
            assert!(requested.iter().all(|url| url.starts_with("file://") || url.starts_with("data:")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
