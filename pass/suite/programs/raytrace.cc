// A picture of reflecting spheres over a chequered floor (the kind of Splash-2's raytrace): virtual
// shapes, shadows, recursion for reflections.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "../harness/suite.h"

const uint64_t kernel_expected[2] = {0xaf5d119e4c253780, 0xa6dcfd0e0c9aa99f};
const unsigned kernel_passes = 1;

namespace {

struct Vec {
    double x = 0, y = 0, z = 0;
    Vec operator+(const Vec &o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec operator-(const Vec &o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec operator*(double f) const { return {x * f, y * f, z * f}; }
    double dot(const Vec &o) const { return x * o.x + y * o.y + z * o.z; }
    Vec unit() const { return *this * (1 / std::sqrt(dot(*this))); }
};

struct Ray {
    Vec from, way; // a unit vector
};

class Shape {
  public:
    virtual ~Shape() = default;
    virtual double hit(const Ray &ray) const = 0; // the distance, or a negative number
    virtual Vec normal(const Vec &at) const = 0;
    virtual double brightness(const Vec &at) const = 0;
    virtual double mirror() const = 0;
};

class Sphere final : public Shape {
  public:
    Sphere(Vec centre, double radius, double shade) : centre_(centre), radius_(radius), shade_(shade) {}
    double hit(const Ray &ray) const override {
        const Vec way = centre_ - ray.from;
        const double middle = way.dot(ray.way), inside = middle * middle - way.dot(way) + radius_ * radius_;
        if (inside < 0) return -1;
        const double half = std::sqrt(inside);
        return middle - half > 1e-6 ? middle - half : middle + half > 1e-6 ? middle + half : -1;
    }
    Vec normal(const Vec &at) const override { return (at - centre_) * (1 / radius_); }
    double brightness(const Vec &) const override { return shade_; }
    double mirror() const override { return 0.4; }

  private:
    Vec centre_;
    double radius_, shade_;
};

class Floor final : public Shape {
  public:
    double hit(const Ray &ray) const override { return ray.way.y < -1e-9 ? -ray.from.y / ray.way.y : -1; }
    Vec normal(const Vec &) const override { return {0, 1, 0}; }
    double brightness(const Vec &at) const override {
        return (static_cast<int>(std::floor(at.x)) + static_cast<int>(std::floor(at.z))) % 2 == 0 ? 0.9 : 0.2;
    }
    double mirror() const override { return 0.1; }
};

std::vector<std::unique_ptr<Shape>> shapes;
std::vector<double> picture;
int width;
const Vec LIGHT = Vec{-4, 9, -5};

const Shape *nearest(const Ray &ray, double &distance) {
    const Shape *found = nullptr;
    for (const auto &shape : shapes) {
        const double at = shape->hit(ray);
        if (at > 1e-6 && (found == nullptr || at < distance)) {
            found = shape.get();
            distance = at;
        }
    }
    return found;
}

bool in_shadow(const Ray &to_light, double light_distance) {
    for (const auto &shape : shapes) {
        const double at = shape->hit(to_light);
        if (at > 1e-6 && at < light_distance) return true;
    }
    return false;
}

double trace(const Ray &ray, int depth) {
    double distance = 0;
    const Shape *shape = nearest(ray, distance);
    if (shape == nullptr) return 0.3 + 0.2 * ray.way.y;
    const Vec at = ray.from + ray.way * distance, normal = shape->normal(at), to_light = LIGHT - at;
    const double light_distance = std::sqrt(to_light.dot(to_light));
    const Ray shadow{at, to_light * (1 / light_distance)};
    const double facing = normal.dot(shadow.way);
    double light = 0.1;
    if (facing > 0 && !in_shadow(shadow, light_distance)) light += 0.9 * facing;
    const double own = light * shape->brightness(at);
    if (depth == 0) return own;
    const Ray reflected{at, ray.way - normal * (2 * normal.dot(ray.way))};
    return own * (1 - shape->mirror()) + shape->mirror() * trace(reflected, depth - 1);
}

} // namespace

void kernel_setup(bool full) {
    uint64_t seed = 20;
    width = full ? 130 : 24;
    picture.resize(static_cast<size_t>(width * width));
    shapes.push_back(std::make_unique<Floor>());
    for (int i = 0; i < 24; i++) {
        const double radius = 0.3 + 0.5 * suite_uniform(&seed);
        const Vec centre{8 * suite_uniform(&seed) - 4, radius + suite_uniform(&seed),
                         8 * suite_uniform(&seed)};
        shapes.push_back(std::make_unique<Sphere>(centre, radius, 0.3 + 0.7 * suite_uniform(&seed)));
    }
}

void kernel_run(void) {
    for (int row = 0; row < width; row++)
        for (int column = 0; column < width; column++) {
            const Vec way{(column + 0.5) / width - 0.5, 0.3 - (row + 0.5) / width, 0.8};
            picture[static_cast<size_t>(row * width + column)] = trace({{0, 2, -6}, way.unit()}, 4);
        }
}

uint64_t kernel_digest(void) {
    uint64_t digest = 0;
    for (double pixel : picture) digest = suite_mix_real(digest, pixel);
    return digest;
}

// Nothing is brighter than the light; there is shadow, light and sky.
bool kernel_valid(void) {
    double least = 1, most = 0;
    for (double pixel : picture) {
        least = std::min(least, pixel);
        most = std::max(most, pixel);
    }
    return least > 0 && least < 0.1 && most < 1 && most > 0.4;
}
