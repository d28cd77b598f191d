# A package for Nix, from a checkout: `nix-build dist/nix`. nixpkgs needs a rustc that is no older than Cargo.toml says.
# The version is Cargo.toml's, and the crates are those of Cargo.lock: there is nothing to fill in.
{ lib, rustPlatform, installShellFiles }:

let
  workspace = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).workspace;
in
rustPlatform.buildRustPackage {
  pname = "nuthatch";
  version = workspace.package.version;

  src = lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;
  cargoBuildFlags = [ "--bin" "nuthatch" ];
  # `make test` runs them: they start servers, and some need a network.
  doCheck = false;

  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    $out/bin/nuthatch man >nuthatch.1
    installManPage nuthatch.1
    for command in serve top ping completions man; do
      $out/bin/nuthatch man $command >nuthatch-$command.1
      installManPage nuthatch-$command.1
    done
    for shell in bash zsh fish; do
      $out/bin/nuthatch completions $shell >nuthatch.$shell
      installShellCompletion --$shell --name nuthatch.$shell nuthatch.$shell
    done
    mv $out/share/zsh/site-functions/nuthatch.zsh $out/share/zsh/site-functions/_nuthatch
  '';

  meta = {
    description = "In-memory cache for clients of memcached and redis";
    license = lib.licenses.asl20;
    mainProgram = "nuthatch";
    platforms = [ "x86_64-linux" "aarch64-linux" ];
  };
}
