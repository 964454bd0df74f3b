//! The page in a real browser. Without one, the test prints a note and passes.

mod chromium;
mod layout;

use chromium::Chromium;
use daimc::synthetic::Synthetic;
use daimc::{Daimc, Neighbours, Views, simulate};
use daimc_report::Report;

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

/// A page about incomplete data whose every name tries to break out of it.
fn page() -> String {
    let data = Synthetic::new(240, 4).noise(1.2).seed(3);
    let present = simulate::missing(240, &[0.4; 3], 1).unwrap();
    let ids: Vec<String> = (0..240).map(|i| format!("{HOSTILE}{i}")).collect();
    let views = ["a", HOSTILE, "c"].iter().zip(&present).map(|(name, present)| {
        let names = (0..15).map(|f| format!("{name}&{f}")).collect();
        let view = data.dense::<f64>(name, 15).unwrap().feature_names(names).unwrap();
        view.ids(ids.clone()).unwrap().mask(present).unwrap()
    });
    let views = Views::new(views.collect()).unwrap();
    // Clusters from V alone, so that confidence varies on these easy data.
    let fit = Daimc::new(4).neighbours(Neighbours::Off).fit(&views).unwrap();
    let classes: Vec<Option<String>> =
        data.truth().iter().map(|class| Some(format!("class {class} {HOSTILE}"))).collect();
    let provenance = serde_json::json!({ "command": HOSTILE, "files": [HOSTILE] });
    let report = Report::new(&views, &fit).title(HOSTILE).truth(&classes).provenance(&provenance);
    report.render().unwrap()
}

/// Reports that a test is skipped because something is missing; with `DAIMC_STRICT` that is a failure.
fn skip(reason: &str) {
    assert!(std::env::var_os("DAIMC_STRICT").is_none_or(|strict| strict != "1"), "{reason}");
    println!("skipped: {reason}");
}

#[test]
fn the_page_works_in_a_browser_in_light_and_in_dark() {
    let Some(program) = chromium::find() else {
        skip("no Chromium (CHROMIUM, chromium, chromium-browser or google-chrome on PATH)");
        return;
    };
    let mut browser = Chromium::start(&program);
    let file = browser.folder.join("report.html");
    std::fs::write(&file, page()).unwrap();
    for (scheme, ground) in [("light", "rgb(255, 255, 255)"), ("dark", "rgb(18, 22, 28)")] {
        browser.open(&file, scheme, 1280);
        assert_eq!(browser.evaluate("getComputedStyle(document.body).backgroundColor"), ground);
        every_chart_is_drawn(&mut browser);
        names_are_text(&mut browser);
        hovering_shows_the_instance(&mut browser);
        the_switch_changes_colours(&mut browser);
        the_other_switch_moves_the_points(&mut browser);
        a_legend_entry_highlights_a_group(&mut browser);
        features_follow_the_choosers(&mut browser);
        pressing_a_feature_shows_its_distribution(&mut browser);
        an_instance_is_found_by_its_id(&mut browser);
        tables_sort(&mut browser);
        assert_eq!(browser.errors(), [""; 0]);
        let requested = browser.requested();
        assert!(
            requested.iter().all(|url| url.starts_with("file://") || url.starts_with("data:")),
            "{requested:?}"
        );
    }
    a_table_is_downloaded(&mut browser);
    figures_are_saved(&mut browser);
    assert!(browser.requested().iter().all(|url| !url.starts_with("http")));

    browser.open(&file, "light", 400);
    let sticks_out = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
    assert_eq!(browser.evaluate(sticks_out), false);
    print_shows_all_details(&mut browser);
    nothing_can_be_fetched(&mut browser);
}

fn every_chart_is_drawn(browser: &mut Chromium) {
    let marks = [
        ("#map use", 240),
        ("#tiles .tile rect:not(.ground)", 3),
        ("#combinations rect.bar", 3),
        ("#combinations circle.on", 3),
        ("#clusters-chart rect", 12),
        ("#clusters-chart .median", 8),
        ("#objective path.line", 1),
        ("#parts path.line", 2),
        ("#feature-chart rect", 15),
        ("#distribution-chart .box rect", 4),
        ("#distribution-chart circle", 100),
        ("#silhouettes-chart path", 5),
        ("#heat-map image", 2),
        ("#heat-map .unseen", 2),
        ("#confusion-table td.matched", 4),
        ("#reconstruction-table td", 15),
        ("#contributions-table td", 15),
    ];
    for (selector, least) in marks {
        let seen = format!(
            "[...document.querySelectorAll({selector:?})].filter((e) => {{ const r = e.getBoundingClientRect(); \
             return r.width > 0.2 || r.height > 0.2; }}).length"
        );
        let found = browser.evaluate(&seen).as_u64().unwrap();
        assert!(found >= least, "{selector}: {found} marks, not {least}");
    }
    let unnamed =
        "[...document.querySelectorAll('.chart > svg')].filter((e) => !e.getAttribute('aria-label')).length";
    assert_eq!(browser.evaluate(unnamed), 0);
}

fn names_are_text(browser: &mut Chromium) {
    assert_eq!(browser.evaluate("document.images.length"), 0);
    assert_eq!(browser.evaluate("document.scripts.length"), 2);
    assert_eq!(browser.evaluate("document.querySelector('h1').textContent"), HOSTILE);
}

fn hovering_shows_the_instance(browser: &mut Chromium) {
    browser
        .evaluate("document.getElementById('map').scrollIntoView({ block: 'center', behavior: 'instant' })");
    // A point that no other covers.
    let at = browser.evaluate(
        "[...document.querySelectorAll('#map use')].map((e, i) => { const r = e.getBoundingClientRect(); \
         return [i, r.x + r.width / 2, r.y + r.height / 2, e]; }) \
         .find(([, x, y, e]) => document.elementFromPoint(x, y) === e).slice(0, 3)",
    );
    browser.point(at[1].as_f64().unwrap(), at[2].as_f64().unwrap());
    let id = browser.evaluate(&format!("data.instances.id[data.map.at[{}]]", at[0]));
    assert!(id.as_str().unwrap().starts_with(HOSTILE));
    assert_eq!(browser.evaluate("document.querySelector('#tip strong').textContent"), id);
    assert_eq!(browser.evaluate("document.getElementById('tip').hidden"), false);
    let tip = browser.evaluate("document.getElementById('tip').textContent");
    for word in ["cluster", "confidence", "views seen", "contributes ", HOSTILE, "true class"] {
        assert!(tip.as_str().unwrap().contains(word), "{tip}");
    }
    let lines = browser.evaluate("[...document.querySelectorAll('#tip dd')].map((e) => e.textContent)");
    let seen = browser
        .evaluate(&format!("about.views(data.map.at[{}]).filter(([, c]) => c !== null).length", at[0]));
    let contributions =
        lines.as_array().unwrap().iter().filter(|line| line.as_str().unwrap().starts_with("contributes"));
    assert_eq!(contributions.count() as u64, seen.as_u64().unwrap(), "{lines}");
    browser.point(1.0, 1.0);
    assert_eq!(browser.evaluate("document.getElementById('tip').hidden"), true);

    browser.evaluate("document.getElementById('map').focus()");
    browser.press("ArrowRight", 39);
    assert_eq!(browser.evaluate("document.getElementById('tip').hidden"), false, "keys reach instances");
    browser.press("Escape", 27);
}

/// The computed colours of the points.
fn colours(browser: &mut Chromium) -> Vec<String> {
    let fills = "[...document.querySelectorAll('#map use')].map((e) => getComputedStyle(e).fill)";
    serde_json::from_value(browser.evaluate(fills)).unwrap()
}

fn different(colours: &[String]) -> usize {
    colours.iter().collect::<std::collections::BTreeSet<_>>().len()
}

fn the_switch_changes_colours(browser: &mut Chromium) {
    let by_cluster = colours(browser);
    assert_eq!(different(&by_cluster), 4);
    let mut seen = vec![by_cluster.clone()];
    for by in ["confidence", "views", "class"] {
        browser.click(&format!("label:has(input[value={by}])"));
        let now = colours(browser);
        assert!(different(&now) > 2 && !seen.contains(&now), "{by}");
        let legend =
            format!("document.querySelector('[data-legend={by}]').getBoundingClientRect().height > 0");
        assert_eq!(browser.evaluate(&legend), true, "{by}");
        seen.push(now);
    }
    // The same with the keyboard: from the last option to the first.
    browser.press("ArrowRight", 39);
    assert_eq!(colours(browser), by_cluster);
}

/// The positions of the points and of the numbers of the clusters.
fn positions(browser: &mut Chromium) -> Vec<(f64, f64)> {
    let places = "[...document.querySelectorAll('#map use, #map .names text')].map((e) => \
                  [Number(e.getAttribute('x')), Number(e.getAttribute('y'))])";
    serde_json::from_value(browser.evaluate(places)).unwrap()
}

fn the_other_switch_moves_the_points(browser: &mut Chromium) {
    let shown = "[...document.querySelectorAll('[data-position]')].filter((e) => e.getClientRects().length)\
                 .map((e) => e.tagName + ' ' + e.dataset.position)";
    let layout = positions(browser);
    assert_eq!(browser.evaluate(shown), serde_json::json!(["SPAN layout"]));
    browser.click("label:has(input[value=plane])");
    let plane = positions(browser);
    assert_eq!(browser.evaluate(shown), serde_json::json!(["g plane", "SPAN plane"]));
    assert!(layout.iter().zip(&plane).filter(|(a, b)| a != b).count() > 230, "{plane:?}");
    let frame = browser.evaluate("document.getElementById('map').getAttribute('viewBox')");
    let frame: Vec<f64> = frame.as_str().unwrap().split(' ').map(|side| side.parse().unwrap()).collect();
    assert!(plane.iter().all(|(x, y)| *x > 0.0 && *x < frame[2] && *y > 0.0 && *y < frame[3]), "{plane:?}");
    // Back with the keyboard.
    browser.press("ArrowLeft", 37);
    assert_eq!(positions(browser), layout);
    assert_eq!(browser.evaluate(shown), serde_json::json!(["SPAN layout"]));
}

fn a_legend_entry_highlights_a_group(browser: &mut Chromium) {
    let away = "document.querySelectorAll('#map .away').length";
    browser.click("[data-legend=cluster] [data-group='2']");
    let others = browser.evaluate("data.instances.cluster.filter((c) => c !== 2).length");
    assert_eq!(browser.evaluate(away), others);
    browser.click("[data-legend=cluster] [data-group='2']");
    assert_eq!(browser.evaluate(away), 0);
}

fn features_follow_the_choosers(browser: &mut Chromium) {
    let bars = "document.getElementById('feature-bars').textContent";
    let choose = |browser: &mut Chromium, chooser: &str, value: &str| {
        browser.evaluate(&format!(
            "(() => {{ const e = document.getElementById('{chooser}'); e.value = '{value}'; \
             e.dispatchEvent(new Event('change')); }})()"
        ));
        browser.evaluate(bars)
    };
    let first = browser.evaluate(bars);
    assert!(first.as_str().unwrap().contains("a&"));
    let of_cluster = choose(browser, "feature-cluster", "1");
    assert_ne!(first, of_cluster);
    let of_other_view = choose(browser, "feature-view", "1");
    assert!(of_other_view.as_str().unwrap().contains(&format!("{HOSTILE}&")));
    assert_ne!(choose(browser, "feature-cluster", "-1"), of_other_view);
    choose(browser, "feature-view", "0");
}

fn pressing_a_feature_shows_its_distribution(browser: &mut Chromium) {
    let heading = "document.querySelector('#distribution h3').title";
    let first = browser.evaluate(heading);
    browser.click("#feature-chart .feature:nth-of-type(4)");
    let second = browser.evaluate(heading);
    assert_ne!(first, second, "a row of the list");
    let caption = browser.evaluate("document.querySelector('#distribution figcaption').textContent");
    assert!(caption.as_str().unwrap().contains("are missing from the view and 0 lack the cell"), "{caption}");
    browser.click("#heat-map .feature:last-of-type text");
    let third = browser.evaluate(heading);
    assert_ne!(second, third, "a name next to the heat map");
    browser.evaluate(
        "document.querySelector('image[data-heat]').scrollIntoView({ block: 'center', behavior: 'instant' })",
    );
    let at = browser.evaluate(
        "(() => { const r = document.querySelector('image[data-heat]').getBoundingClientRect(); return [r.x + 3, r.y + 3]; })()",
    );
    browser.point(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    let tip = browser.evaluate("document.getElementById('tip').textContent");
    for word in [HOSTILE, "z-score", "cluster0"] {
        assert!(tip.as_str().unwrap().contains(word), "{tip}");
    }
    browser.press_at(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    assert_ne!(browser.evaluate(heading), third, "a row of the heat map");
    let seen = "document.querySelector('image[data-heat]').getAttribute('href').length";
    assert!(browser.evaluate(seen).as_u64().unwrap() > 500);
    browser.point(1.0, 1.0);
}

fn an_instance_is_found_by_its_id(browser: &mut Chromium) {
    let enter = |browser: &mut Chromium, text: &str| {
        browser.evaluate(&format!(
            "(() => {{ const e = document.getElementById('instance-id'); e.value = {text:?}; e.dispatchEvent(new Event('input')); }})()"
        ));
        browser.evaluate("document.getElementById('instance-matches').textContent")
    };
    assert!(enter(browser, "unknown").as_str().unwrap().contains("no such ID"));
    assert!(enter(browser, "alert(1)>23").as_str().unwrap().contains("23"));
    enter(browser, &format!("{HOSTILE}17"));
    let card = browser.evaluate("document.getElementById('instance').textContent");
    for words in ["confidence", "views seen", "What each view contributes", "Nearest in V", "true class"] {
        assert!(card.as_str().unwrap().contains(words), "{card}");
    }
    // The nearest instances have the most similar rows of V.
    let nearest = "document.querySelectorAll('#instance li').length";
    assert_eq!(browser.evaluate(nearest), 8);
    assert_eq!(browser.evaluate("document.querySelectorAll('#map .here').length"), 1);
    browser.click("#instance li button");
    let now = browser.evaluate("document.querySelector('#instance h3').textContent");
    assert_ne!(now, format!("{HOSTILE}17"));
}

fn figures_are_saved(browser: &mut Chromium) {
    let figures =
        browser.evaluate("[...document.querySelectorAll('figure[data-name]')].map((e) => e.dataset.name)");
    let figures: Vec<String> = serde_json::from_value(figures).unwrap();
    assert!(figures.len() >= 12, "{figures:?}");
    let buttons = "document.querySelectorAll('figure[data-name] .export button').length";
    assert_eq!(browser.evaluate(buttons), 2 * figures.len());
    for name in figures {
        browser.click(&format!("figure[data-name='{name}'] .export button:first-child"));
        let svg = browser.downloaded(&format!("{name}.svg"));
        assert!(svg.starts_with("<?xml") && svg.contains("<svg"), "{name}");
        assert!(!svg.contains("var(") && !svg.contains("class="), "{name}: styles are written out");
        assert!(svg.contains("font-size") && svg.contains("fill=\"#fff\""), "{name}: on white ground");
        let whole = browser.evaluate(&format!(
            "new DOMParser().parseFromString({}, 'image/svg+xml').querySelector('parsererror') === null",
            serde_json::json!(svg)
        ));
        assert_eq!(whole, true, "{name}");
        browser.click(&format!("figure[data-name='{name}'] .export button:last-child"));
        let (width, height) = browser.downloaded_picture(&format!("{name}.png"));
        assert!(width >= 200 && height >= 60, "{name}: {width} × {height}");
    }
    let light = "getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.evaluate(light), "rgb(18, 22, 28)", "the page is dark again");
}

fn tables_sort(browser: &mut Chromium) {
    let sizes = "[...document.getElementById('clusters-table').tBodies[0].rows].map((r) => Number(r.cells[1].dataset.v))";
    let heading = "#clusters-table th:nth-child(2) button";
    let read =
        |browser: &mut Chromium| -> Vec<f64> { serde_json::from_value(browser.evaluate(sizes)).unwrap() };
    browser.click(heading);
    let down = read(browser);
    assert!(down.is_sorted_by(|a, b| a >= b) && down.len() == 4, "{down:?}");
    browser.click(heading);
    assert!(read(browser).is_sorted());
    let state = "document.querySelector('#clusters-table th:nth-child(2)').getAttribute('aria-sort')";
    assert_eq!(browser.evaluate(state), "ascending");
    // Columns of text are sorted, too.
    browser.click("#features-table th:nth-child(2) button");
    let words =
        "[...document.getElementById('features-table').tBodies[0].rows].map((r) => r.cells[1].textContent)";
    let words: Vec<String> = serde_json::from_value(browser.evaluate(words)).unwrap();
    assert_eq!(words.len(), 45);
    assert!(words[0].starts_with(HOSTILE), "{words:?}");
}

fn a_table_is_downloaded(browser: &mut Chromium) {
    browser.click("button[data-table=clusters-table]");
    let text = browser.downloaded("clusters.tsv");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("cluster\tinstances\tshare\t"), "{text}");
    assert_eq!(lines.len(), 5);
    let sizes = lines[1..].iter().map(|line| line.split('\t').nth(1).unwrap().parse::<usize>().unwrap());
    assert_eq!(sizes.sum::<usize>(), 240);
}

fn print_shows_all_details(browser: &mut Chromium) {
    assert_ne!(browser.evaluate("document.querySelectorAll('details:not([open])').length"), 0);
    let paper = browser.call("Page.printToPDF", &serde_json::json!({ "printBackground": true }));
    assert!(paper["data"].as_str().unwrap().len() > 50_000);
    assert_eq!(browser.evaluate("document.querySelectorAll('details:not([open])').length"), 0);
}

fn nothing_can_be_fetched(browser: &mut Chromium) {
    let refused = "fetch('https://example.org/').then(() => 'loaded', () => 'refused')";
    assert_eq!(browser.evaluate(refused), "refused");
}
