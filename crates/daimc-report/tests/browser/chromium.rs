//! Chromium, driven through the `DevTools` protocol over a pair of pipes, without a port or a library.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The browser and its only page.
pub struct Chromium {
    process: Child,
    requests: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    last: u64,
    /// All events so far, as (method, parameters).
    pub events: Vec<(String, Value)>,
    /// The folder for its profile and for downloads.
    pub folder: PathBuf,
}

const PATIENCE: Duration = Duration::from_secs(60);

/// The browser's executable, if one is installed.
pub fn find() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("CHROMIUM").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file())
}

impl Chromium {
    pub fn start(program: &Path) -> Self {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("daimc-report-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // The browser reads from file descriptor 3 and writes to 4; the shell redirects our pipes.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1", "sh"])
            .arg(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", folder.join("profile").display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let requests = process.stdin.take().unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(value) = serde_json::from_slice(&message) else { return };
                if sender.send(value).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let mut browser =
            Self { process, requests, messages, session: None, last: 0, events: Vec::new(), folder };
        let downloads = browser.folder.display().to_string();
        browser
            .call("Browser.setDownloadBehavior", &json!({ "behavior": "allow", "downloadPath": downloads }));
        let target = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    /// Calls a method and waits for its result.
    pub fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut request = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            request["sessionId"] = json!(session);
        }
        let mut bytes = serde_json::to_vec(&request).unwrap();
        bytes.push(0);
        self.requests.write_all(&bytes).unwrap();
        loop {
            let mut message = self.receive();
            if message["id"] == json!(id) {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
        }
    }

    fn receive(&mut self) -> Value {
        let mut message = self.messages.recv_timeout(PATIENCE).expect("the browser answers");
        if let Some(method) = message["method"].as_str() {
            self.events.push((method.into(), message["params"].take()));
            return Value::Null;
        }
        message
    }

    /// Opens a file with a colour scheme ("light", "dark" or "print") in a window of some width.
    pub fn open(&mut self, file: &Path, scheme: &str, width: u32) {
        let media = if scheme == "print" { "print" } else { "" };
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", &json!({ "media": media, "features": features }));
        let metrics = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        // Print has no scroll bars.
        self.call("Emulation.setScrollbarsHidden", &json!({ "hidden": scheme == "print" }));
        self.events.clear();
        self.call("Page.navigate", &json!({ "url": format!("file://{}", file.display()) }));
        while !self.events.iter().any(|(method, _)| method == "Page.loadEventFired") {
            self.receive();
        }
    }

    /// Evaluates an expression in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", &parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Moves the pointer.
    pub fn point(&mut self, x: f64, y: f64) {
        self.call("Input.dispatchMouseEvent", &json!({ "type": "mouseMoved", "x": x, "y": y }));
    }

    /// Clicks the middle of the element that a selector matches.
    pub fn click(&mut self, selector: &str) {
        let at = self.evaluate(&format!(
            "(() => {{ const e = document.querySelector({}); e.scrollIntoView({{ block: 'center', behavior: 'instant' }}); \
             const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; }})()",
            json!(selector)
        ));
        self.press_at(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    }

    /// Clicks at a position.
    pub fn press_at(&mut self, x: f64, y: f64) {
        for kind in ["mousePressed", "mouseReleased"] {
            let button = json!({ "type": kind, "x": x, "y": y, "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &button);
        }
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let event = json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Waits for a download and reads it.
    pub fn downloaded(&mut self, name: &str) -> String {
        let (file, start) = (self.folder.join(name), Instant::now());
        loop {
            // A call processes the browser's pending messages.
            self.evaluate("1");
            match std::fs::read_to_string(&file) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => assert!(start.elapsed() < PATIENCE, "{name} is downloaded"),
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for an image to be downloaded and returns its size.
    pub fn downloaded_picture(&mut self, name: &str) -> (u32, u32) {
        let (file, start) = (self.folder.join(name), Instant::now());
        loop {
            self.evaluate("1");
            match std::fs::read(&file) {
                Ok(bytes) if bytes.len() > 100 => {
                    assert!(bytes.starts_with(b"\x89PNG"), "{name}");
                    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
                    return (number(16), number(20));
                }
                _ => assert!(start.elapsed() < PATIENCE, "{name} is downloaded"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Error messages and exceptions of the page.
    pub fn errors(&self) -> Vec<String> {
        let wrong = |(method, parameters): &(String, Value)| match method.as_str() {
            "Runtime.exceptionThrown" => Some(parameters.to_string()),
            "Runtime.consoleAPICalled" if parameters["type"] == "error" => Some(parameters.to_string()),
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => Some(parameters.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(wrong).collect()
    }

    /// URLs that the page requested.
    pub fn requested(&self) -> Vec<String> {
        let requests = self.events.iter().filter(|(method, _)| method == "Network.requestWillBeSent");
        requests.map(|(_, parameters)| parameters["request"]["url"].as_str().unwrap().into()).collect()
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
