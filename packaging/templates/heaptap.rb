class Heaptap < Formula
  desc "Memory profiler for Android apps: native heap, Java heap and process memory"
  homepage "@HOMEPAGE@"
  version "@VERSION@"
  license any_of: ["Apache-2.0", "MIT"]

  on_macos do
    url "@URL:universal-apple-darwin@"
    sha256 "@SHA256:universal-apple-darwin@"
  end

  on_linux do
    on_intel do
      url "@URL:x86_64-unknown-linux-musl@"
      sha256 "@SHA256:x86_64-unknown-linux-musl@"
    end
    on_arm do
      url "@URL:aarch64-unknown-linux-musl@"
      sha256 "@SHA256:aarch64-unknown-linux-musl@"
    end
  end

  def install
    bin.install "heaptap"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/heaptap.bash" => "heaptap"
    zsh_completion.install "completions/_heaptap"
    fish_completion.install "completions/heaptap.fish"
    doc.install Dir["*.md"], "THIRD-PARTY-LICENSES.txt", "docs", "configs", "benches"
  end

  test do
    system bin/"heaptap", "demo", "-o", "out"
    assert_path_exists testpath/"out/report.html"
  end
end
